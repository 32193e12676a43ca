"""Certificates that must let nobody in: expired, for another host, of an authority that nobody trusts, and trusted no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.stack.certificates import Authority, Issued
from tests.cli.conftest import run_command
from tests.clients.driver import WAIT_S, wait_until
from tests.security.secured_broker import SecuredBroker

SOON_MS = "3000"
REFUSALS = (KafkaError._TRANSPORT, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)


def librdkafka(
    broker: SecuredBroker, listener: str, issued: Issued | None = None, **more: str
) -> AdminClient:
    options: dict[str, object] = {
        "bootstrap.servers": broker.bootstrap(listener),
        "security.protocol": "ssl",
        "ssl.ca.location": str(broker.authority.path),
        "socket.timeout.ms": SOON_MS,
        "log_level": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    if issued is not None:
        options |= {"ssl.certificate.pem": issued.certificate_text(), "ssl.key.pem": issued.key_text()}
    return AdminClient(options)


def lets_in(client: AdminClient) -> bool:
    try:
        client.list_topics(timeout=3)
    except KafkaException as error:
        if error.args[0].code() not in REFUSALS:
            raise
        return False
    return True


def penstock(broker: SecuredBroker, tmp_path: Path, listener: str = "TLS", **more: str) -> str:
    """What our own command says; nothing when it is let in."""
    config = tmp_path / "client.properties"
    given = {"security.protocol": "SSL", "ssl.truststore.location": str(broker.authority.path)}
    given |= {name.replace("_", "."): value for name, value in more.items()}
    config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    done = run_command(
        "penstock", "topics", "list", "-b", broker.bootstrap(listener), "--command-config", str(config)
    )
    assert done.err.count("\n") <= 1, done.err
    return "" if done.code == 0 else done.err


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [("expired", "has expired"), ("another host", "is for another name"), ("unknown", "is not trusted")],
)
def test_a_broker_with_a_bad_certificate_is_not_believed(
    tmp_path: Path, authority: Authority, kind: str, complaint: str
) -> None:
    signer = Authority(tmp_path / "other") if kind == "unknown" else authority
    issued = signer.issue(
        kind.replace(" ", "-"),
        host="kafka.example.com" if kind == "another host" else "127.0.0.1",
        days=0 if kind == "expired" else 30,
    )
    with SecuredBroker(tmp_path, authority, **{"ssl.keystore.location": str(issued.pem())}) as broker:
        assert not lets_in(librdkafka(broker, "TLS"))
        assert complaint in penstock(broker, tmp_path)
        if kind == "another host":
            unchecked = {"ssl_endpoint_identification_algorithm": "none"}
            assert lets_in(librdkafka(broker, "TLS", **unchecked))
            assert penstock(broker, tmp_path, ssl_endpoint_identification_algorithm="") == ""
        wait_until(lambda: "the TLS handshake failed" in broker.log(), "one line about it")


@pytest.mark.parametrize("kind", ["expired", "unknown"])
def test_a_client_with_a_bad_certificate_is_not_let_in(
    secured: SecuredBroker, tmp_path: Path, kind: str
) -> None:
    signer = Authority(tmp_path / "other") if kind == "unknown" else secured.authority
    issued = signer.issue("mallory", days=0 if kind == "expired" else 30)
    assert not lets_in(librdkafka(secured, "MUTUAL", issued))
    told = penstock(secured, tmp_path, "MUTUAL", ssl_keystore_location=str(issued.pem()))
    assert "does not take our certificate" in told or "does it want a certificate of ours?" in told
    assert lets_in(librdkafka(secured, "MUTUAL", secured.authority.issue("ana")))
    why = "certificate has expired" if kind == "expired" else "unable to get local issuer certificate"
    complaints = [line for line in secured.log().splitlines() if why in line]
    assert complaints
    assert "closing the connection from 127.0.0.1: its certificate is not accepted" in complaints[0]


def test_who_is_trusted_no_more_is_not_let_in_again(tmp_path: Path, authority: Authority) -> None:
    """The trust store is replaced while the broker runs. A connection that is open stays so."""
    former = Authority(tmp_path / "former")
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority.path.read_text() + former.path.read_text())
    with SecuredBroker(tmp_path, authority, **{"ssl.truststore.location": str(trusted)}) as broker:
        ana, bob = authority.issue("ana"), former.issue("bob")
        open_before = librdkafka(broker, "MUTUAL", bob)
        assert lets_in(open_before)
        assert lets_in(librdkafka(broker, "MUTUAL", ana))
        trusted.write_text(authority.path.read_text())
        wait_until(lambda: not lets_in(librdkafka(broker, "MUTUAL", bob)), "the end of the trust")
        assert lets_in(open_before)
        assert lets_in(librdkafka(broker, "MUTUAL", ana))
        assert "the certificates are read anew" in broker.log()
        open_before.list_topics(timeout=WAIT_S)
