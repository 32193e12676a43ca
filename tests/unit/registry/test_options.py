"""Properties of the registry."""

import pytest

from penstock.client.errors import BadOption
from penstock.registry.options import registry_options

CONFLUENTS = {
    "listeners": "http://0.0.0.0:8081",
    "kafkastore.bootstrap.servers": "SASL_SSL://a:9092,SASL_SSL://b:9092",
    "kafkastore.security.protocol": "SASL_SSL",
    "kafkastore.sasl.mechanism": "PLAIN",
    "kafkastore.topic": "_schemas",
    "avro.compatibility.level": "full",
    "debug": "false",
    "kafkastore.group.id": "x",
}


def test_confluents_properties_are_taken() -> None:
    options = registry_options(CONFLUENTS, bootstrap=None, client={"sasl.mechanism": "SCRAM-SHA-256"})
    assert options.bootstrap == "a:9092,b:9092"
    assert dict(options.client) == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert (options.level, options["kafkastore.topic"], options.warnings) == ("FULL", "_schemas", [])
    assert registry_options(CONFLUENTS, bootstrap="c:1", client={}).bootstrap == "c:1"
    assert registry_options({}, bootstrap=None, client={"bootstrap.servers": "d:1"}).bootstrap == "d:1"


def test_names_that_nobody_knows_are_told_with_the_nearest() -> None:
    given = {
        "kafkastore.bootstap.servers": "a",
        "schema.registry.group.ids": "b",
        "kafkastore.sasl.mecanism": "c",
    }
    assert registry_options(given, bootstrap=None, client={}).warnings == [
        "there is no property schema.registry.group.ids; did you mean schema.registry.group.id?",
        "there is no property kafkastore.bootstap.servers; did you mean kafkastore.bootstrap.servers?",
        "there is no property kafkastore.sasl.mecanism; did you mean kafkastore.sasl.mechanism?",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafkastore.timeout.ms", "soon"),
        ("schema.compatibility.level", "some"),
        ("avro.compatibility.level", "some"),
        ("listeners", "8081"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=name.replace(".", r"\.")):
        registry_options({name: value}, bootstrap=None, client={})
