"""Environment variables as options, as Apache Kafka's container image takes them."""

import pytest

from penstock.cli.broker import main
from penstock.config.environment import option_name, options_in


@pytest.mark.parametrize(
    ("variable", "option"),
    [
        ("NUM_PARTITIONS", "num.partitions"),
        ("ADVERTISED_LISTENERS", "advertised.listeners"),
        ("LISTENER_NAME_EXTERNAL__NET_SSL_KEYSTORE_TYPE", "listener.name.external_net.ssl.keystore.type"),
        ("SASL_MECHANISM_SCRAM___SHA___256", "sasl.mechanism.scram-sha-256"),
    ],
)
def test_underscores_are_dots_underscores_and_hyphens(variable: str, option: str) -> None:
    assert option_name(variable) == option


def test_only_variables_with_the_prefix_are_options() -> None:
    variables = {"KAFKA_BROKER_ID": "3", "PATH": "/bin", "MY_KAFKA_NUM_PARTITIONS": "9", "KAFKA_": "x"}
    assert options_in(variables, "KAFKA_") == {"broker.id": "3"}


def test_variables_of_the_jvm_and_of_logging_are_no_options() -> None:
    variables = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_OPTS": "-D",
        "KAFKA_LOG4J_LOGGERS": "a=INFO",
        "KAFKA_JMX_PORT": "9999",
    }
    assert options_in(variables, "KAFKA_") == {}


def test_an_empty_value_is_a_value() -> None:
    assert options_in({"KAFKA_RACK": ""}, "KAFKA_") == {"rack": ""}


def test_the_broker_refuses_an_empty_prefix_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env-prefix", ""]) == 1
    assert capsys.readouterr().err == (
        "penstock: --env-prefix takes the beginning of names, for example KAFKA_; it is empty\n"
    )
