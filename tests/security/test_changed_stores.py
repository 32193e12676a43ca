"""Key and trust stores that are set while a broker runs: what it cannot use is refused, and never keeps it from starting."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from tests.cli.conftest import Finished, run_command
from tests.clients.driver import WAIT_S, wait_until
from tests.security.secured_broker import SecuredBroker
from tests.security.test_cluster import listener_options

LOCATION = "listener.name.tls.ssl.keystore.location"


def set_live(bootstrap: str, *settings: str, broker_id: int = 1, verb: str = "--add-config") -> Finished:
    return run_command(
        "kafka-configs", "--bootstrap-server", bootstrap, "--alter", "--entity-type", "brokers",
        "--entity-name", str(broker_id), verb, ",".join(settings),
    )  # fmt: skip


def shown(broker: SecuredBroker) -> bytes:
    """The certificate that the broker shows."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", broker.ports["TLS"])))


def described(broker: SecuredBroker) -> str:
    return run_command(
        "kafka-configs", "--bootstrap-server", broker.bootstrap("PLAINTEXT"), "--describe",
        "--entity-type", "brokers", "--entity-name", "1",
    ).out  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (f"{LOCATION}=/nonexistent.pem", f"{LOCATION}: cannot read '/nonexistent.pem'"),
        ("listener.name.mutual.ssl.truststore.location=/nonexistent.pem", "cannot read '/nonexistent.pem'"),
        (f"{LOCATION}=/dev/zero", f"{LOCATION}: '/dev/zero' is not a file"),
        (f"{LOCATION}=/tmp", f"{LOCATION}: '/tmp' is not a file"),
        ("listener.name.tls.ssl.cipher.suites=TLS_NONE_WITH_NOTHING", "OpenSSL has none of"),
    ],
)
def test_a_store_that_the_broker_cannot_use_is_refused(
    secured: SecuredBroker, setting: str, complaint: str
) -> None:
    refused = set_live(secured.bootstrap("PLAINTEXT"), setting)
    assert refused.code == 1
    assert "InvalidRequestException" in refused.err
    assert complaint in refused.err
    assert setting.partition("=")[0] not in described(secured)


def test_a_store_is_looked_at_where_the_change_is_only_tried(
    secured: SecuredBroker, tmp_path: Path, authority: Authority
) -> None:
    admin = AdminClient({"bootstrap.servers": secured.bootstrap("PLAINTEXT")})
    good = authority.issue("tried").pem()
    for path, is_good in (("/nonexistent.pem", False), (str(good), True)):
        resource = ConfigResource(ResourceType.BROKER, "1")
        resource.incremental_configs = [
            ConfigEntry(LOCATION, path, incremental_operation=AlterConfigOpType.SET)
        ]
        (future,) = admin.incremental_alter_configs([resource], validate_only=True).values()
        refusal = future.exception(WAIT_S)
        assert (refusal is None) == is_good, refusal
    assert LOCATION not in described(secured)


def test_setting_the_same_path_again_reads_the_file_again(tmp_path: Path, authority: Authority) -> None:
    """Also where the file looks as it did: nothing but the command can be the cause."""
    store = tmp_path / "own.pem"
    stores = [issued.key_text() + issued.certificate_text() for issued in map(authority.issue, ("a", "b"))]
    size = max(map(len, stores)) + 1

    def put(text: str) -> None:
        store.write_text(text.ljust(size, "\n"))
        os.utime(store, (1_000_000_000, 1_000_000_000))

    put(stores[0])
    with SecuredBroker(tmp_path / "broker", authority) as broker:
        assert set_live(broker.bootstrap("PLAINTEXT"), f"{LOCATION}={store}").code == 0
        wait_until(lambda: "the certificates are read anew" in broker.log(), "the new store")
        first = shown(broker)
        put(stores[1])
        assert set_live(broker.bootstrap("PLAINTEXT"), f"{LOCATION}={store}").code == 0
        wait_until(lambda: shown(broker) != first, "the certificate that is in the file now")


def test_a_stored_path_that_is_gone_does_not_keep_the_broker_from_starting(
    tmp_path: Path, authority: Authority
) -> None:
    issued = authority.issue("other")
    store = tmp_path / "other.pem"
    store.write_text(issued.key_text() + issued.certificate_text())
    with SecuredBroker(tmp_path / "broker", authority) as broker:
        assert set_live(broker.bootstrap("PLAINTEXT"), f"{LOCATION}={store}").code == 0
        wait_until(lambda: shown(broker) == ssl.PEM_cert_to_DER_cert(issued.certificate_text()), "it")
    store.unlink()
    with SecuredBroker(tmp_path / "broker", authority) as broker:
        own = broker.key_store.read_text()
        assert ssl.DER_cert_to_PEM_cert(shown(broker)).strip() in own
        complaints = [line for line in broker.log().splitlines() if "what kafka-configs has set" in line]
        assert len(complaints) == 1
        assert (
            "listener TLS: what kafka-configs has set cannot be used, so the broker's own options are: "
            in (complaints[0])
        )
        assert "ERROR" in complaints[0]
        assert str(store) in complaints[0]
        taken_back = set_live(broker.bootstrap("PLAINTEXT"), LOCATION, verb="--delete-config")
        assert taken_back.code == 0, taken_back.err
        assert LOCATION not in described(broker)


def test_the_broker_that_is_to_use_a_store_looks_at_it_and_not_the_controller(
    tmp_path: Path, authority: Authority
) -> None:
    ports = free_ports(4)
    options_of = {}
    for number in (1, 2):
        options_of[number] = listener_options(authority, "SSL", ports[number + 1]) | {
            "listeners": f"PLAINTEXT://127.0.0.1:{ports[number - 1]},SSL://127.0.0.1:{ports[number + 1]}",
            "ssl.client.auth": "none",
        }
    name = "listener.name.ssl.ssl.keystore.location"
    with PenstockCluster(tmp_path, ports=ports[:2], options_of=options_of) as cluster:
        for broker_id in (1, 2):
            log_text = partial(cluster.log_text, broker_id)
            refused = set_live(cluster.bootstrap, f"{name}=/nonexistent.pem", broker_id=broker_id)
            assert refused.code == 1
            assert f"{name}: cannot read '/nonexistent.pem'" in refused.err
            store = authority.issue(f"broker-{ports[broker_id + 1]}").pem()
            assert set_live(cluster.bootstrap, f"{name}={store}", broker_id=broker_id).code == 0
            for what in ("listener SSL", "connections to other brokers"):
                wait_until(partial(is_in, f"{what}: the certificates are read anew", log_text), "the store")


def is_in(words: str, text: Callable[[], str]) -> bool:
    return words in text()
