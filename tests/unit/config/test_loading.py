import subprocess
import sys

import pytest

from penstock.config.broker_options import BROKER_OPTIONS, listener_option_base
from penstock.config.cluster_options import CLUSTER_OPTIONS
from penstock.config.known_names import dynamic_names, is_known, kafka_names, nearest
from penstock.config.loading import load
from penstock.config.option import READ_ONLY, ConfigError
from penstock.config.own_options import OWN_OPTIONS
from penstock.config.topic_options import TOPIC_OPTIONS


def reports(**names: str) -> list[tuple[str, str]]:
    _, found = load({name.replace("_", "."): value for name, value in names.items()})
    return [(report.level, report.text) for report in found]


def test_the_command_line_wins_over_the_file() -> None:
    config, _ = load({"num.partitions": "2", "message.max.bytes": "5"}, {"num.partitions": "3"})
    assert (config.get("num.partitions"), config.get("message.max.bytes")) == (3, 5)


def test_honoured_options_are_not_reported() -> None:
    assert reports(num_partitions="2", log_dirs="a") == []


def test_options_of_a_listener_are_not_reported() -> None:
    _, found = load({
        "listener.name.inside.ssl.keystore.location": "a.pem",
        "listener.name.inside.plain.sasl.jaas.config": "PlainLoginModule required;",
        "scram-sha-512.sasl.jaas.config": "ScramLoginModule required;",
        "plain.connections.max.reauth.ms": "5",
    })  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    "name",
    [
        "sasl.server.callback.handler.class",
        "listener.name.a.plain.sasl.server.callback.handler.class",
        "plain.sasl.server.callback.handler.class",
        "ssl.engine.factory.class",
        "listener.name.a.ssl.engine.factory.class",
    ],
)
def test_somebodys_own_class_that_checks_clients_is_refused(name: str) -> None:
    """A broker that starts without it looks protected by it."""
    with pytest.raises(
        ConfigError, match=rf"com\.acme\.Checks for configuration {name}: Java classes cannot"
    ):
        load({name: "com.acme.Checks"})
    _, found = load(
        {name: "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"}
    )
    assert [report.level for report in found] == ["info"]


def test_a_bad_value_of_one_listener_stops_the_start() -> None:
    with pytest.raises(
        ConfigError, match=r"Invalid value x for configuration listener\.name\.a\.max\.connections"
    ):
        load({"listener.name.a.max.connections": "x"})


def test_options_without_effect_are_reported_in_one_line() -> None:
    expected = "options of Kafka that have no effect in Penstock: zookeeper.metadata.migration.enable, num.io.threads"
    assert reports(zookeeper_metadata_migration_enable="true", num_io_threads="8") == [("info", expected)]


def test_a_name_nobody_has_gets_a_warning_with_the_nearest() -> None:
    expected = "unknown option log.retentoin.ms is ignored; did you mean log.retention.ms?"
    assert reports(log_retentoin_ms="1") == [("warning", expected)]


def test_a_name_like_no_other_gets_no_guess() -> None:
    assert reports(zzzz="1") == [("warning", "unknown option zzzz is ignored")]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("zookeeper.connect", True),
        ("inter.broker.protocol.version", True),
        ("listener.name.internal.ssl.keystore.location", True),
        ("listener.name.internal.scram-sha-256.sasl.jaas.config", True),
        ("listener.name.internal.bogus", False),
        ("rlmm.config.x", True),
        ("super.users", True),
        ("bogus", False),
    ],
)
def test_kafkas_names_are_known(name: str, known: bool) -> None:
    assert is_known(name) is known


def test_the_nearest_name_is_one_of_kafkas() -> None:
    assert nearest("advertised.listner") == "advertised.listeners"
    assert nearest("zookeper.connect") == "zookeeper.connect"


def test_the_base_of_a_listeners_option() -> None:
    assert listener_option_base("listener.name.a.ssl.client.auth") == "ssl.client.auth"
    assert listener_option_base("listener.name.a.plain.sasl.jaas.config") == "sasl.jaas.config"
    assert listener_option_base("plain.sasl.jaas.config") == "sasl.jaas.config"
    assert listener_option_base("plain.ssl.client.auth") is None
    assert listener_option_base("plane.sasl.jaas.config") is None
    assert listener_option_base("listener.name.a") is None
    assert listener_option_base("listener.security.protocol.map") is None


AUTHORIZER_NAMES = ("super.users", "allow.everyone.if.no.acl.found")
"""Kafka's authorizers read them; its broker does not declare them."""


def test_the_tables_agree_with_kafkas_names_and_update_modes() -> None:
    for name, option in BROKER_OPTIONS.items():
        if option in OWN_OPTIONS:
            assert name.startswith(("penstock.", "confluent."))
            continue
        known = name in kafka_names() or name in dynamic_names() or option in CLUSTER_OPTIONS
        known = known or name in AUTHORIZER_NAMES
        assert (known and is_known(name)) or name.startswith("penstock.zookeeper."), name
        assert option.live == dynamic_names().get(name, READ_ONLY), name


def test_a_bad_value_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value many for configuration num\.partitions"):
        load({"num.partitions": "many"})


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"replica.fetch.wait.max.ms": "31000"}, "replica.fetch.wait.max.ms should always be less than"),
        ({"inter.broker.listener.name": "FOO"}, "based on currently configured listeners are PLAINTEXT"),
        (
            {"security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol is SSL, and no listener has",
        ),
        ({"max.connections.per.ip.overrides": "a:5,foo"}, "overrides: 'foo' is not ADDRESS:COUNT"),
        (
            {"group.consumer.max.session.timeout.ms": "1000"},
            "group.consumer.max.session.timeout.ms must be greater than or equal to group.consumer.min.session",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "16000"},
            "must be less than or equal to group.consumer.max.h",
        ),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater"),
        ({"broker.id": "-5"}, "broker.id must be greater than or equal to -1, not -5"),
        ({"node.id": "-2"}, "node.id must be greater than or equal to -1, not -2"),
        ({"broker.id": "-1", "zookeeper.connect": "zk:2181"}, "broker.id=-1 asks for a generated id"),
        ({"node.id": "1", "broker.id": "2"}, "You must set `node.id` to the same value as `broker.id`"),
        ({"listeners": "C://:1", "controller.listener.names": "C"}, "at least one broker listener"),
        ({"queued.max.request.bytes": "5"}, "must be larger or equal to socket.request.max.bytes"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"log.dirs": ""}, "'log.dirs' must not be empty"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "SSL"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
    ],
)
def test_options_that_do_not_fit_together_stop_the_start(properties: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        load(properties)


@pytest.mark.parametrize(
    ("properties", "sets", "node_id"),
    [
        ({}, {}, 1),
        ({"broker.id": "7"}, {}, 7),
        ({"node.id": "8"}, {}, 8),
        ({"node.id": "8", "broker.id": "8"}, {}, 8),
        ({"broker.id": "-1"}, {}, 1),
        ({"broker.id": "7"}, {"node.id": "9"}, 9),
        ({"node.id": "7"}, {"broker.id": "9"}, 9),
    ],
)
def test_either_name_of_the_brokers_number_sets_both(
    properties: dict[str, str], sets: dict[str, str], node_id: int
) -> None:
    config, _ = load(properties, sets)
    assert config.node_id == node_id
    assert config.get("broker.id") in (node_id, -1)


def test_topic_options_are_kept_in_alphabetical_order() -> None:
    assert list(TOPIC_OPTIONS) == sorted(TOPIC_OPTIONS)


def test_loading_nothing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from penstock.config.loading import load; load({});"
        "print([name for name in ('difflib', 'dataclasses', 'inspect', 'penstock.config.known_names')"
        " if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.inter.broker.protocol", "PLAINTEXT"),
    ],
)
def test_entries_that_ask_for_no_protection_pass(name: str, value: str) -> None:
    load({name: value})


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"log.dir": "/a", "log.dirs": "/b"}, "log.dir"),
        ({"group.max.session.timeout.ms": "5"}, "group.max.session.timeout.ms"),
    ],
)
def test_what_can_hardly_be_meant_is_told(properties: dict[str, str], name: str) -> None:
    assert [report.name for report in load(properties)[1] if report.level == "warning"] == [name]
