"""Instances that speak https, to their clients and to one another."""

import ssl
from pathlib import Path

from penstock.stack.certificates import Authority
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.registry.registries import RegistryProcess, record


def test_a_follower_reaches_its_leader_by_tls(broker: PenstockBroker, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    properties = {
        "listeners": "https://127.0.0.1:0",
        "inter.instance.protocol": "https",
        "ssl.keystore.location": str(authority.issue("registry", hosts=["127.0.0.1"]).pem()),
        "ssl.truststore.location": str(authority.path),
        "kafkastore.topic": "_tls",
        "schema.registry.group.id": "tls",
    }
    running = [
        RegistryProcess(broker.bootstrap, tmp_path, properties, name=f"tls-{number}") for number in range(2)
    ]
    try:
        for number, one in enumerate(running):
            one.context = ssl.create_default_context(cafile=authority.path)
            wait_until(lambda one=one: "The leader is https" in one.log, "a leader")  # type: ignore[misc]
            assert one.register(f"s{number}", record("S", f"f{number}")) == number + 1
    finally:
        assert [one.close() for one in running] == [0, 0]
