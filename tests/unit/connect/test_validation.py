"""Configurations checked: which messages, which definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from penstock.connect import InvalidConfig, Kind, Setting, Settings, SinkConnector
from penstock.connect.findings import Finding, Verdict
from penstock.connect.plugins import Plugins
from penstock.connect.providers import Providers
from penstock.connect.tasks.settings import WorkerSettings
from penstock.connect.validation import Validation

CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
INSERT = "org.apache.kafka.connect.transforms.InsertField$Value"
MATCHES = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
WORKER = {"key.converter": CONVERTER, "value.converter": CONVERTER}


def checked(config: Mapping[str, str | None], **worker: str) -> Verdict:
    given = {**WORKER, **{name.replace("__", "."): text for name, text in worker.items()}}
    return Validation(Plugins(), WorkerSettings.of(given), Providers.of(given)).check(config)


def finding(verdict: Verdict, name: str) -> Finding:
    return next(one for one in verdict.findings if one.setting.name == name)


SOURCE = {"connector.class": "FileStreamSource", "name": "n", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "name": "n", "topics": "t"}


def test_a_good_configuration_has_no_errors() -> None:
    for config in (SOURCE, SINK):
        verdict = checked(config)
        assert verdict.errors == []
        assert verdict.refusal() is None
        assert verdict.document()["error_count"] == 0


def test_messages_are_counted_and_not_settings() -> None:
    verdict = checked({**SOURCE, "tasks.max": "x"})
    assert finding(verdict, "tasks.max").errors == [
        "Invalid value x for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    ]
    refusal = verdict.refusal()
    assert refusal is not None
    assert refusal.startswith(
        "Connector configuration is invalid and contains the following 2 error(s):\nInvalid value x"
    )
    assert refusal.endswith("at the endpoint `/connector-plugins/{connectorType}/config/validate`")
    assert checked({**SOURCE, "tasks.max": "0"}).errors == [
        "Invalid value 0 for configuration tasks.max: Value must be at least 1"
    ]


def test_a_sink_reads_topics_or_a_pattern() -> None:
    both = "topics and topics.regex are mutually exclusive options, but both are set."
    assert checked({**SINK, "topics.regex": "b"}).errors == [both, both]
    none = "Must configure one of topics or topics.regex"
    assert checked({**SINK, "topics": ""}).errors == [none, none]
    dead = checked({**SINK, "errors.deadletterqueue.topic.name": "t"}).errors
    assert dead[0].startswith("The DLQ topic 't' may not be included in the list of topics")


def test_the_workers_converters_count_where_none_is_named() -> None:
    verdict = checked(SOURCE)
    found = finding(verdict, "key.converter")
    assert (found.value, found.definition()["default_value"]) == (CONVERTER, CONVERTER)
    assert CONVERTER in found.recommended
    unknown = checked({**SOURCE, "key.converter": "nope"})
    assert unknown.errors == [
        "Invalid value nope for configuration key.converter: Class nope could not be found."
    ]
    assert not finding(unknown, "key.converter.plugin.version").is_visible


def test_settings_of_a_named_converter_are_checked() -> None:
    verdict = checked({**SOURCE, "value.converter": CONVERTER, "value.converter.schemas.enable": "x"})
    assert verdict.errors == [
        "Invalid value x for configuration schemas.enable: Expected value to be either true or false"
    ]
    assert "Schemas" in verdict.groups


def test_transforms_and_predicates_have_groups_of_their_own() -> None:
    verdict = checked({
        **SINK, "transforms": "a,b", "transforms.a.type": INSERT, "transforms.a.static.field": "f",
        "transforms.a.static.value": "v", "transforms.a.predicate": "p", "transforms.b.type": "nope",
        "predicates": "p", "predicates.p.type": MATCHES,
    })  # fmt: skip
    assert verdict.groups == [
        "Common", "Transforms", "Predicates", "Error Handling", "Transforms: a", "Transforms: b", "Predicates: p",
    ]  # fmt: skip
    assert finding(verdict, "transforms.b.type").errors == [
        "Invalid value nope for configuration transforms.b.type: Class nope could not be found."
    ]
    assert finding(verdict, "predicates.p.pattern").errors == [
        'Missing required configuration "predicates.p.pattern" which has no default value.'
    ]
    negate = finding(verdict, "transforms.a.negate").definition()
    assert (negate["group"], negate["order_in_group"], negate["default_value"]) == (
        "Transforms: a",
        2,
        "false",
    )
    assert finding(verdict, "transforms.a.plugin.version").value is not None


def test_a_predicate_that_is_not_there_is_told() -> None:
    verdict = checked({
        **SINK, "transforms": "a", "transforms.a.type": INSERT, "transforms.a.static.field": "f",
        "transforms.a.static.value": "v", "transforms.a.predicate": "nobody",
    })  # fmt: skip
    assert "there is no predicate of this name" in verdict.errors[0]


def test_orders_are_kafkas() -> None:
    verdict = checked(SOURCE)
    wanted = {
        "name": ("Common", 1), "tasks.max": ("Common", 4), "transforms": ("Transforms", 12), "predicates": ("Predicates", 13),
        "config.action.reload": ("Common", 14), "errors.tolerance": ("Error Handling", 3),
        "topic.creation.groups": ("Topic Creation", 1), "exactly.once.support": ("Exactly Once Support", 2),
        "offsets.storage.topic": ("offsets.topic", 1), "topic": (None, -1),
    }  # fmt: skip
    for name, (group, order) in wanted.items():
        found = finding(verdict, name).definition()
        assert (found["group"], found["order_in_group"]) == (group, order), name
    sink = checked(SINK)
    assert finding(sink, "topics").order == 4
    assert finding(sink, "errors.deadletterqueue.topic.name").order == 6


def test_exactly_once_is_refused_where_it_cannot_be() -> None:
    once = {**SOURCE, "exactly.once.support": "required", "file": "f"}
    assert checked(once).errors == ["This worker does not have exactly-once source support enabled."]
    enabled = {"exactly__once__source__support": "enabled", "offset__storage__topic": "o", "group__id": "g"}
    assert checked(once, **enabled).errors == []
    without_file = {**SOURCE, "exactly.once.support": "required"}
    assert "does not support exactly-once semantics" in checked(without_file, **enabled).errors[0]
    by_connector = {**SOURCE, "transaction.boundary": "connector"}
    assert "connector-defined transaction boundaries" in checked(by_connector).errors[0]


def test_overrides_of_clients_are_listed_and_secrets_hidden() -> None:
    verdict = checked(
        {**SOURCE, "producer.override.acks": "1", "producer.override.sasl.jaas.config": "secret"}
    )
    assert finding(verdict, "producer.override.acks").value == "1"
    assert finding(verdict, "producer.override.sasl.jaas.config").value == "[hidden]"
    refused = checked(
        {**SOURCE, "producer.override.acks": "1"}, connector__client__config__override__policy="None"
    )
    assert len(refused.errors) == 1


def test_a_connector_has_a_name() -> None:
    """By which it can be asked for."""
    assert checked({**SOURCE, "name": ""}).errors == [
        "Invalid value  for configuration name: String may not be empty"
    ]
    control = "String may not contain control sequences but had the following ASCII chars: 10"
    assert checked({**SOURCE, "name": "a\nb"}).errors == [
        f"Invalid value a\nb for configuration name: {control}"
    ]


def test_nulls_and_missing_classes_are_refused() -> None:
    assert checked({**SOURCE, "x": None}).errors == [
        "Null value can not be supplied as the configuration value."
    ]
    with pytest.raises(InvalidConfig, match="contains no connector type"):
        checked({"name": "x"})
    with pytest.raises(InvalidConfig, match="Failed to find any class that implements Connector"):
        checked({"connector.class": "nope.Nope"})


class Picky(SinkConnector):
    settings = Settings(
        Setting("mode", Kind.STRING, "How.", default="a", recommended=lambda values: ["a", "b"]),
        Setting(
            "password",
            Kind.PASSWORD,
            "A secret.",
            default=None,
            is_visible=lambda values: values["mode"] == "b",
        ),
    )

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return {"mode": ["mode c is not for now"]} if given.get("mode") == "c" else {}


def test_a_connectors_own_check_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.connect import validation

    monkeypatch.setattr(validation, "loaded", lambda plugin: Picky)
    monkeypatch.setenv("A_SECRET_OF_TESTS", "c")
    given = {**SINK, "mode": "c", "password": "secret"}
    verdict = checked(given)
    assert verdict.errors == ["mode c is not for now"]
    assert finding(verdict, "mode").recommended == ["a", "b"]
    assert finding(verdict, "password").value == "[hidden]"
    assert not finding(verdict, "password").is_visible
    env = {"config__providers": "env", "config__providers__env__class": "EnvVarConfigProvider"}
    referring = checked({**SINK, "mode": "${env:A_SECRET_OF_TESTS}"}, **env)
    assert finding(referring, "mode").value == "${env:A_SECRET_OF_TESTS}"
    assert referring.errors == ["mode [hidden] is not for now"]
    elsewhere = checked(
        {**SINK, "mode": "c", "password": "secret", "file": "${env:A_SECRET_OF_TESTS}"}, **env
    )
    assert elsewhere.errors == ["mode [hidden] is not for now"], "whichever setting the message is about"
