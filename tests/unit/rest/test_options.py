"""The properties of the REST proxy."""

import pytest

from penstock.client.errors import BadOption
from penstock.rest.access import Accesses
from penstock.rest.callers import caller_of
from penstock.rest.options import load_rest
from penstock.rest.registry_values import Registries


def test_a_file_of_kafka_rest_is_taken_as_it_is() -> None:
    loaded = load_rest(
        {
            "id": "kafka-rest-1",
            "schema.registry.url": "http://localhost:8081",
            "zookeeper.connect": "localhost:2181",
            "bootstrap.servers": "PLAINTEXT://one:9092,SSL://two:9093",
            "listeners": "http://0.0.0.0:8082",
            "client.security.protocol": "SSL",
            "client.ssl.truststore.location": "/ca.pem",
            "producer.acks": "1",
            "consumer.request.timeout.ms": "5000",
            "consumer.max.poll.records": "10",
            "client.init.timeout.ms": "60000",
        }
    )
    assert loaded.warnings == []
    assert loaded.rest.bootstrap == "one:9092,two:9093"
    assert loaded.rest["consumer.request.timeout.ms"] == 5000
    shared = {"security.protocol": "SSL", "ssl.truststore.location": "/ca.pem"}
    assert loaded.rest.clients == {
        "admin": shared,
        "producer": {**shared, "acks": "1"},
        "consumer": {**shared, "max.poll.records": "10"},
    }


def test_the_command_line_is_stronger_than_the_file() -> None:
    loaded = load_rest({"listeners": "http://0.0.0.0:1"}, host="127.0.0.1", port=2)
    assert [str(one) for one in loaded.web.listeners] == ["http://127.0.0.1:2"]
    assert [str(one) for one in load_rest({}).web.listeners] == ["http://0.0.0.0:8082"]


def test_properties_of_the_clients_command_line_count_for_all_of_them() -> None:
    loaded = load_rest(
        {"client.linger.ms": "7"}, command={"sasl.mechanism": "PLAIN", "bootstrap.servers": "x:1"}
    )
    for role in ("admin", "producer", "consumer"):
        assert loaded.rest.clients[role] == {"sasl.mechanism": "PLAIN", "linger.ms": "7"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"consumer.instance.timeout.ms": "0"}, "consumer.instance.timeout.ms"),
        ({"penstock.admin.threads": "many"}, "penstock.admin.threads"),
        ({"producer.acks": "2"}, "producer.acks"),
        ({"client.request.timeout.ms": "soon"}, "admin.request.timeout.ms"),
        ({"confluent.rest.auth.propagate.method": "KERBEROS"}, "confluent.rest.auth.propagate.method"),
        (
            {"confluent.rest.auth.propagate.method": "ssl"},
            "SSL cannot be done, because a proxy does not have the keys",
        ),
        ({"listeners": "ftp://x:1"}, "listeners"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words.replace(".", r"\.")):
        load_rest(given)


@pytest.mark.parametrize(
    ("method", "passed", "tokens"),
    [
        ("none", False, False),
        ("BASIC", True, False),
        ("jetty_auth", True, False),
        ("Bearer", True, True),
    ],
)
def test_logins_are_passed_on_by_each_of_its_names(method: str, passed: bool, tokens: bool) -> None:
    rest = load_rest({"confluent.rest.auth.propagate.method": method}).rest
    assert (rest.passes_logins_on, rest.passes_tokens_on) == (passed, tokens)


@pytest.mark.parametrize(
    ("urls", "own", "is_passed"),
    [
        ("https://registry:8081", {}, True),
        ("http://localhost:8081,https://registry:8081", {}, True),
        ("http://registry:8081", {}, False),  # a password does not go over a network as it is
        ("https://registry:8081", {"schema.registry.basic.auth.user.info": "proxy:secret"}, False),
        ("https://proxy:secret@registry:8081", {}, False),
    ],
)
def test_a_registry_gets_the_callers_login_where_the_proxy_has_none_there(
    urls: str, own: dict[str, str], is_passed: bool
) -> None:
    given = {"confluent.rest.auth.propagate.method": "BASIC", "schema.registry.url": urls, **own}
    registries = Registries(load_rest(given).rest)
    caller = caller_of("Basic YW5hOnNlY3JldA==", wants_token=False, mechanism="PLAIN")
    assert (registries.of(caller) is not registries.own) == is_passed
    registries.close()


def test_logins_cannot_be_passed_on_to_a_listener_without_logins() -> None:
    given = {"confluent.rest.auth.propagate.method": "BASIC", "client.security.protocol": "SSL"}
    with pytest.raises(BadOption, match=r"client\.security\.protocol: 'SSL' has no logins to pass on"):
        Accesses(load_rest(given).rest)


def test_names_that_nobody_knows_are_told() -> None:
    loaded = load_rest({"schema.registry.url": "http://x", "api.v2.enabled": "false", "colour": "red"})
    assert loaded.warnings == [
        "there is no property api.v2.enabled; did you mean api.v2.enable?",
        "there is no property colour",
    ]


def test_properties_of_clients_that_nobody_knows_are_told_and_left_out() -> None:
    loaded = load_rest({"producer.linger.mss": "1", "producer.linger.ms": "2"})
    assert loaded.warnings == ["there is no property producer.linger.mss"]
    assert loaded.rest.clients["producer"] == {"linger.ms": "2"}
