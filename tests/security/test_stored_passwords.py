"""Passwords of key stores that are set while a broker runs: encrypted where they are stored."""

from __future__ import annotations

import ssl
from pathlib import Path

from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from tests.clients.driver import wait_until
from tests.security.secured_broker import SecuredBroker
from tests.security.test_changed_stores import described, set_live, shown
from tests.security.test_cluster import listener_options

LISTENER = "listener.name.tls.ssl"
PASSWORD = "st0re-pass"
FIRST = {"password.encoder.secret": "first-secret"}
SECOND = {"password.encoder.secret": "second-secret", "password.encoder.old.secret": "first-secret"}
LAST = {"password.encoder.secret": "second-secret"}


def files_with(directory: Path, text: str) -> list[Path]:
    found = [path for path in directory.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
    return [path for path in found if path.name not in ("server.properties", "penstock.log")]


def test_a_password_is_stored_encrypted_and_outlives_its_secret(tmp_path: Path, authority: Authority) -> None:
    other = authority.issue("other")
    certificate = ssl.PEM_cert_to_DER_cert(other.certificate_text())
    settings = (
        f"{LISTENER}.keystore.location={other.pkcs12(PASSWORD)}",
        f"{LISTENER}.keystore.password={PASSWORD}",
    )
    home = tmp_path / "broker"
    with SecuredBroker(home, authority, **FIRST) as broker:
        wrong = set_live(broker.bootstrap("PLAINTEXT"), settings[0], settings[1] + "x")
        assert wrong.code == 1
        assert f"{LISTENER}.keystore.password: does not open" in wrong.err
        assert PASSWORD + "x" not in wrong.err.partition("Exception")[2]
        done = set_live(broker.bootstrap("PLAINTEXT"), *settings)
        assert done.code == 0, done.err
        wait_until(lambda: shown(broker) == certificate, "the certificate of the new store")
        assert PASSWORD not in described(broker)
        assert "first-secret" not in described(broker)
    assert files_with(home, "encryptedPassword:")
    assert not files_with(home, PASSWORD)
    for options in (SECOND, LAST):
        with SecuredBroker(home, authority, **options) as broker:
            assert shown(broker) == certificate
    with SecuredBroker(home, authority) as broker:
        assert shown(broker) != certificate
        assert f"Dynamic password config {LISTENER}.keystore.password could not be decoded" in broker.log()
    for secret in (PASSWORD, "first-secret", "second-secret"):
        assert secret not in broker.log()


def test_without_a_secret_no_password_is_taken(secured: SecuredBroker) -> None:
    refused = set_live(secured.bootstrap("PLAINTEXT"), f"{LISTENER}.key.password={PASSWORD}")
    assert refused.code == 1
    assert "InvalidRequestException: Password encoder secret not configured" in refused.err
    assert "password.encoder.secret" in refused.err


def test_each_broker_of_a_cluster_opens_its_own(tmp_path: Path, authority: Authority) -> None:
    ports = free_ports(4)
    options_of = {}
    for number in (1, 2):
        options_of[number] = FIRST | {
            **listener_options(authority, "SSL", ports[number + 1]),
            "listeners": f"PLAINTEXT://127.0.0.1:{ports[number - 1]},TLS://127.0.0.1:{ports[number + 1]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
            "security.inter.broker.protocol": "PLAINTEXT",
            "ssl.client.auth": "none",
        }
    with PenstockCluster(tmp_path, ports=ports[:2], options_of=options_of) as cluster:
        for number in (1, 2):
            issued = authority.issue(f"own-{number}")
            location = f"{LISTENER}.keystore.location={issued.pkcs12(PASSWORD)}"
            password = f"{LISTENER}.keystore.password={PASSWORD}"
            done = set_live(cluster.bootstrap, location, password, broker_id=number)
            assert done.code == 0, done.err
            expected, place = issued.certificate_text().strip(), ("127.0.0.1", ports[number + 1])

            def is_shown(expected: str = expected, place: tuple[str, int] = place) -> bool:
                return ssl.get_server_certificate(place).strip() == expected

            wait_until(is_shown, "the certificate of the new store")
