"""Java's producer and consumer, of today and of the ZooKeeper era, at listeners of ours with TLS, certificates and logins."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.stack.certificates import Authority
from simulation.apache.resident_tools import resident_tool
from tests.security.secured_broker import MODULES, SecuredBroker
from tests.security.test_listeners import make_user

JAVA_SETUP = Path(__file__).resolve().parents[2] / "scripts" / "java-setup"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
# The producer's class, and the options of both by which they take a file.
OF_VERSION = {
    "4.3.1": ("org.apache.kafka.tools.ConsoleProducer", "--command-config", "--command-config"),
    "3.9.1": ("kafka.tools.ConsoleProducer", "--producer.config", "--consumer.config"),
}
PASSWORD = "s3cret"


@pytest.fixture(scope="module", autouse=True)
def older_jars() -> None:
    done = subprocess.run([JAVA_SETUP, "3.9.1"], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    with SecuredBroker(tmp_path_factory.mktemp("secured"), authority) as broker:
        make_user(broker, "eva", PASSWORD)
        yield broker


def properties(broker: SecuredBroker, listener: str) -> dict[str, str]:
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(broker.authority.path)}
    if listener == "MUTUAL":
        return trust | {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(broker.authority.issue("ana").pkcs12(PASSWORD)),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }
    if listener == "LOGIN":
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required username="bob" password="bobs";',
        }
    return trust | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{MODULES}.scram.ScramLoginModule required username="eva" password="{PASSWORD}";',
    }


@pytest.mark.parametrize("listener", ["MUTUAL", "LOGIN", "SECURE"])
@pytest.mark.parametrize("version", OF_VERSION)
def test_javas_clients_write_and_read(
    broker: SecuredBroker, tmp_path: Path, topic_name: str, version: str, listener: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties(broker, listener).items()))
    at = ("--bootstrap-server", broker.bootstrap(listener), "--topic", topic_name)
    producer, of_producer, of_consumer = OF_VERSION[version]
    resident_tool(producer, *at, of_producer, str(file), stdin="one\ntwo\n", version=version)
    reading = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    said = resident_tool(CONSUMER, *at, of_consumer, str(file), *reading, version=version)
    assert said.stdout.split() == ["one", "two"]
