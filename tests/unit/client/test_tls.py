"""TLS as the properties say: text in place of files, certificates that nobody checks, types and versions that cannot be."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.client.errors import AccessRefused, BadOption
from penstock.client.security import Security, security_of
from penstock.client.tls import refusal, wrapped
from penstock.model.endpoints import Address
from penstock.stack.certificates import Authority

PASSWORD = "open-sesame"
UNCHECKED = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextlib.contextmanager
def listener(
    authority: Authority,
    *,
    host: str = "127.0.0.1",
    wants_certificate: bool = False,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> Iterator[Address]:
    """Says in one word which version was spoken, to whoever shakes hands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = version
    context.load_cert_chain(authority.issue("listener", host=host).pem())
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.path)

    def answer() -> None:
        connection, _ = server.accept()
        with (
            connection,
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as safe,
        ):
            safe.sendall((safe.version() or "").encode())

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join(30)


def version_spoken(address: Address, security: Security) -> str:
    plain = socket.create_connection(address, timeout=30)
    try:
        with wrapped(plain, address, security) as safe:
            return safe.recv(100).decode()
    except ssl.SSLError as error:
        raise refusal(error, address, security) from None
    finally:
        plain.close()


def as_lines(text: str) -> str:
    return text


def on_one_line(text: str) -> str:
    return text.strip().replace("\n", " ")


def without_a_space(text: str) -> str:
    return text.replace("\n", "")


@pytest.mark.parametrize("written", [as_lines, on_one_line, without_a_space])
@pytest.mark.parametrize("password", [None, PASSWORD])
def test_certificates_and_a_key_may_stand_in_the_properties(
    authority: Authority, written: object, password: str | None
) -> None:
    assert callable(written)
    own = authority.issue("client")
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": written(authority.path.read_text()),
        "ssl.keystore.type": "pem",
        "ssl.keystore.certificate.chain": written(own.certificate_text() + authority.path.read_text()),
        "ssl.keystore.key": written(own.key_text(password)),
    }
    if password is not None:
        assert "ENCRYPTED PRIVATE KEY" in given["ssl.keystore.key"]
        given["ssl.key.password"] = password
    security = security_of(given)
    with listener(authority, wants_certificate=True) as address:
        assert version_spoken(address, security) == "TLSv1.3"
    Producer({**security.librdkafka_settings(), "log_level": 0})  # it reads them at once


def test_a_properties_file_holds_them_as_kafkas_documentation_shows_it(
    authority: Authority, tmp_path: Path
) -> None:
    from penstock.client.property_files import read_properties

    lines = authority.path.read_text().splitlines()
    continued = " \\\n  ".join(lines)
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={continued}\n"
    )
    with listener(authority) as address:
        assert version_spoken(address, security_of(read_properties(str(file)))) == "TLSv1.3"


def test_certificates_are_not_checked_where_that_is_said_and_that_is_told_once(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with listener(authority, host="elsewhere.example") as address, pytest.raises(AccessRefused):
        version_spoken(address, security_of({"security.protocol": "SSL"}))
    given = {**UNCHECKED, "ssl.cipher.suites": ""}  # other properties than in other tests
    for _ in range(2):
        security = security_of(given)
    assert security.librdkafka_settings()["enable.ssl.certificate.verification"] == "false"
    with listener(authority, host="elsewhere.example") as address:
        assert version_spoken(address, security) == "TLSv1.3"
    (told,) = caplog.messages
    assert told.startswith("WARN: enable.ssl.certificate.verification is false: ")


@pytest.mark.parametrize("says", ["true", ""])
def test_certificates_are_checked_otherwise(authority: Authority, says: str) -> None:
    given = {"security.protocol": "SSL"} | ({"enable.ssl.certificate.verification": says} if says else {})
    with listener(authority) as address, pytest.raises(AccessRefused, match="is not trusted"):
        version_spoken(address, security_of(given))


def test_the_versions_of_tls_that_are_named_are_spoken(authority: Authority) -> None:
    given = {"security.protocol": "SSL", "ssl.ca.location": str(authority.path)}
    with listener(authority) as address:
        assert (
            version_spoken(address, security_of({**given, "ssl.enabled.protocols": "TLSv1.2"})) == "TLSv1.2"
        )
    only_newer = security_of({**given, "ssl.enabled.protocols": "TLSv1.3"})
    with listener(authority, version=ssl.TLSVersion.TLSv1_2) as address, pytest.raises(AccessRefused):
        version_spoken(address, only_newer)


def refused(**given: str) -> str:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    with pytest.raises(BadOption) as caught:
        security_of({"security.protocol": "SSL", **properties})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_is_named(authority: Authority) -> None:
    pem = str(authority.path)
    assert refused(ssl_truststore_location=pem, ssl_truststore_type="BOGUS") == (
        "ssl.truststore.type: 'BOGUS' is not PEM, PKCS12, JKS, JCEKS"
    )
    assert refused(ssl_truststore_type="BOGUS").startswith("ssl.truststore.type: 'BOGUS' is not ")
    own = str(authority.issue("named").pem())
    assert refused(ssl_keystore_location=own, ssl_keystore_type="NOPE") == (
        "ssl.keystore.type: 'NOPE' is not PEM, PKCS12, JKS, JCEKS"
    )
    assert refused(ssl_enabled_protocols="TLSv9").startswith("ssl.enabled.protocols: 'TLSv9' is not ")
    assert refused(enable_ssl_certificate_verification="perhaps") == (
        "enable.ssl.certificate.verification: must be true or false, not 'perhaps'"
    )


def test_a_type_that_contradicts_the_file_is_named(authority: Authority) -> None:
    pem, store = authority.path, authority.issue("typed").pkcs12(PASSWORD)
    hint = "; leave the type out, it is not needed"
    assert refused(ssl_truststore_location=str(pem), ssl_truststore_type="JKS") == (
        f"ssl.truststore.type: is JKS, and {pem} (ssl.truststore.location) is PEM{hint}"
    )
    assert refused(
        ssl_keystore_location=str(store), ssl_keystore_password=PASSWORD, ssl_keystore_type="pem"
    ) == (f"ssl.keystore.type: is PEM, and {store} (ssl.keystore.location) is PKCS12{hint}")
    assert refused(ssl_truststore_certificates=pem.read_text(), ssl_truststore_type="PKCS12") == (
        f"ssl.truststore.type: is PKCS12, and ssl.truststore.certificates is PEM{hint}"
    )


@pytest.mark.parametrize("said", ["PKCS12", "jks"])
def test_java_reads_a_pkcs12_file_under_both_names_and_so_do_we(authority: Authority, said: str) -> None:
    store = authority.issue("both").pkcs12(PASSWORD)
    given = {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": said,
    }
    assert security_of({"security.protocol": "SSL", **given}).identity is not None
