"""A worker's properties."""

from __future__ import annotations

import pytest

from penstock.client.errors import BadOption
from penstock.connect.running.loggers import Loggers
from penstock.connect.running.options import WorkerOptions, worker_options
from penstock.connect.running.refusals import Refusal

GROUP = {
    "key.converter": "JsonConverter", "value.converter": "JsonConverter", "group.id": "g", "config.storage.topic": "c",
    "offset.storage.topic": "o", "status.storage.topic": "s",
}  # fmt: skip
ALONE = {
    "key.converter": "JsonConverter",
    "value.converter": "JsonConverter",
    "offset.storage.file.filename": "f",
}


def distributed(**more: str) -> WorkerOptions:
    return worker_options(
        GROUP | {name.replace("__", "."): text for name, text in more.items()}, is_standalone=False
    )


def test_kafkas_example_files_are_taken_without_a_word() -> None:
    """The names of connect-distributed.properties and connect-standalone.properties."""
    options = distributed(
        bootstrap__servers="localhost:9092", key__converter__schemas__enable="true", offset__storage__replication__factor="1",
        offset__flush__interval__ms="10000", plugin__path="/a,/b", producer__acks="all", consumer__max__poll__records="5",
        connect__protocol="compatible", scheduled__rebalance__max__delay__ms="0", sasl__mechanism="PLAIN",
    )  # fmt: skip
    assert options.warnings == []
    assert str(options.web.listeners[0]) == "http://0.0.0.0:8083"
    assert options.group.group_id == "g"
    assert options.worker.flush_interval_s == 10
    alone = worker_options(ALONE | {"listeners": "http://:9999"}, is_standalone=True)
    assert alone.warnings == []
    assert str(alone.web.listeners[0]) == "http://0.0.0.0:9999"
    assert alone.worker.offsets_file == "f"


def test_what_is_missing_wrong_or_misspelt_is_told() -> None:
    for name in GROUP:
        with pytest.raises(BadOption, match=f'Missing required configuration "{name}"'):
            worker_options({key: text for key, text in GROUP.items() if key != name}, is_standalone=False)
    with pytest.raises(BadOption, match=r"offset\.flush\.interval\.ms"):
        distributed(offset__flush__interval__ms="x")
    assert distributed(rest__advertised__hots__name="x").warnings == [
        "there is no property rest.advertised.hots.name; did you mean rest.advertised.host.name?"
    ]


def test_a_standalone_worker_shares_nothing() -> None:
    options = worker_options({**GROUP, **ALONE, "exactly.once.source.support": "enabled"}, is_standalone=True)
    assert options.worker.offsets_topic is None
    assert not options.worker.is_exactly_once


def test_levels_of_loggers() -> None:
    loggers = Loggers()
    name = "penstock.tests.loggers"
    assert loggers.set(name, "debug") == [name]
    assert loggers.set(name, "DEBUG") == [], "nothing has changed"
    assert loggers.get(name)["level"] == "DEBUG"
    assert loggers.set(f"{name}.inner", "TRACE") == [f"{name}.inner"]
    assert loggers.get(f"{name}.inner")["level"] == "TRACE"
    assert loggers.set(name, "WARN") == [name, f"{name}.inner"]
    assert loggers.all()[name]["last_modified"] > 0
    with pytest.raises(Refusal, match="invalid log level 'LOUD'"):
        loggers.set(name, "LOUD")
    with pytest.raises(Refusal, match=r"Logger nobody\.x not found"):
        loggers.get("nobody.x")


def test_a_provider_of_any_file_is_told() -> None:
    given = {"config__providers": "file,env", "config__providers__file__class": "FileConfigProvider",
             "config__providers__env__class": "EnvVarConfigProvider"}  # fmt: skip
    assert distributed(**given).warnings == [
        "config.providers.file.param.allowed.paths is not set: who may make connectors may read any file of this user"
    ]
    assert distributed(**given, config__providers__file__param__allowed__paths="/secrets").warnings == []
    with pytest.raises(BadOption, match=r"config\.providers\.file\.class"):
        distributed(config__providers="file")
