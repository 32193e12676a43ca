"""Logins in a JAAS file, on both sides: `KAFKA_OPTS=-Djava.security.auth.login.config=FILE`."""

from __future__ import annotations

from pathlib import Path

from penstock.stack.certificates import Authority
from tests.cli.conftest import Finished, run_command
from tests.security.secured_broker import MODULES, SecuredBroker

PLAIN = f"{MODULES}.plain.PlainLoginModule"


def test_a_broker_and_a_client_take_their_logins_from_a_file(tmp_path: Path, authority: Authority) -> None:
    sections = {
        "KafkaServer": 'user_ana="general"',
        "secure.KafkaServer": 'user_ana="inner"',
        "KafkaClient": 'username="ana" password="general"',
    }
    file = tmp_path / "logins.conf"
    file.write_text(
        "".join(f"{name} {{\n  {PLAIN} required {options};\n}};\n" for name, options in sections.items())
    )
    environment = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={file}"}
    no_options = {f"listener.name.{name}.plain.sasl.jaas.config": "" for name in ("login", "secure")}

    def list_topics(listener: str, protocol: str) -> Finished:
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"security.protocol={protocol}\nsasl.mechanism=PLAIN\nssl.truststore.location={authority.path}\n"
        )
        return run_command(
            "kafka-topics", "--bootstrap-server", broker.bootstrap(listener), "--list",
            "--command-config", str(properties), environment=environment,
        )  # fmt: skip

    with SecuredBroker(tmp_path / "broker", authority, environment, **no_options) as broker:
        assert list_topics("LOGIN", "SASL_PLAINTEXT").code == 0
        refused = list_topics("SECURE", "SASL_SSL")  # that listener has a section of its own
        assert refused.code == 1
        assert "Invalid username or password" in refused.err
        assert "general" not in broker.log()
