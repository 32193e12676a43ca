"""The properties of the REST proxy."""

import pytest

from penstock.client.errors import BadOption
from penstock.rest.options import load_rest


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
        ({"listeners": "ftp://x:1"}, "listeners"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words.replace(".", r"\.")):
        load_rest(given)


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
