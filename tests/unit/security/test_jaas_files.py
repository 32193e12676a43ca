"""The JAAS file of KAFKA_OPTS: which module of it counts for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.access.file_logins import logins_of_file
from penstock.client.errors import BadOption
from penstock.client.security import security_of
from penstock.config.layers import BrokerConfig
from penstock.security.jaas import LoginModule, parse_login
from penstock.security.jaas_files import JaasFile

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
TEXT = f"""
KafkaServer {{
    {SCRAM} required username="broker" password="general";
    {PLAIN} required user_ana="general";
}};
inner.KafkaServer {{ {PLAIN} required user_ana="inner"; }};
KafkaClient {{
    {PLAIN} required username="ana" password="p \\"a\\\\ss";
    {SCRAM} required username="bob" password="scram";
}};
"""


@pytest.fixture
def kafka_opts(tmp_path: Path) -> str:
    file = tmp_path / "logins.conf"
    file.write_text(TEXT)
    return f"-Xmx1g -Djava.security.auth.login.config={file} -Dx=y"


def broker_config(**more: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "listeners": "INNER://:9092,OUTER://:9093,OPEN://:9094",
            "listener.security.protocol.map": "INNER:SASL_SSL,OUTER:SASL_PLAINTEXT,OPEN:PLAINTEXT",
            "inter.broker.listener.name": "OUTER",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.enabled.mechanisms": "PLAIN",
        }
        | {name.replace("__", "-").replace("_", "."): value for name, value in more.items()}
    )


def found(config: BrokerConfig, kafka_opts: str) -> dict[str, LoginModule]:
    options = logins_of_file(config, JaasFile({"KAFKA_OPTS": kafka_opts}))
    return {name: parse_login(text) for name, text in options.items()}


def test_a_listeners_own_section_comes_before_the_common_one(kafka_opts: str) -> None:
    modules = found(broker_config(), kafka_opts)
    assert {name: dict(module.options) for name, module in modules.items()} == {
        "listener.name.inner.plain.sasl.jaas.config": {"user_ana": "inner"},
        "listener.name.outer.plain.sasl.jaas.config": {"user_ana": "general"},
        "listener.name.outer.scram-sha-512.sasl.jaas.config": {"username": "broker", "password": "general"},
    }


def test_an_option_comes_before_the_file(kafka_opts: str) -> None:
    own = {"listener.name.inner.plain.sasl.jaas.config": f'{PLAIN} required user_ana="own";'}
    assert "listener.name.inner.plain.sasl.jaas.config" not in found(broker_config(**own), kafka_opts)


@pytest.mark.parametrize("form", ["={}", "=={}", "=file:{}", "=file://{}"])
def test_the_file_is_named_as_java_takes_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "a file").write_text(TEXT)
    named = form.format(tmp_path / "a file")
    assert JaasFile({"KAFKA_OPTS": f"'-Djava.security.auth.login.config{named}'"}).modules("KafkaServer")


@pytest.mark.parametrize(
    ("mechanism", "login"), [("PLAIN", ("ana", 'p "a\\ss')), ("SCRAM-SHA-256", ("bob", "scram"))]
)
def test_a_client_without_a_login_takes_that_of_the_file(
    monkeypatch: pytest.MonkeyPatch, kafka_opts: str, mechanism: str, login: tuple[str, str]
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", kafka_opts)
    taken = security_of({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}).login
    assert taken is not None
    assert (taken.username, taken.password) == login
    own = {"sasl.username": "eve", "sasl.password": "own"}
    taken = security_of({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **own}).login
    assert taken is not None
    assert (taken.username, taken.password) == ("eve", "own")


def test_a_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/none")
    with pytest.raises(BadOption, match="KAFKA_OPTS: /none: cannot read it"):
        security_of({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"})
    bad = tmp_path / "bad.conf"
    bad.write_text('KafkaServer {\n Plain required password="hush"\n};')
    with pytest.raises(ValueError, match="line 3") as caught:
        JaasFile({"KAFKA_OPTS": f"-Djava.security.auth.login.config={bad}"}).modules("KafkaServer")
    assert "hush" not in str(caught.value)


def test_a_broker_that_needs_no_login_does_not_look_for_the_file() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://:9092"})
    assert logins_of_file(config, JaasFile({"KAFKA_OPTS": "-Djava.security.auth.login.config=/none"})) == {}
