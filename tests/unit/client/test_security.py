"""Security properties in both dialects, and files that cannot be used: each told by the option's name."""

from __future__ import annotations

import secrets
import socket
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.arrow
from penstock.arrow import BadOption, ReadFailed
from penstock.client.options import client_options
from penstock.client.security import NO_SECURITY, security_of
from penstock.security.java_key_stores import read_key_store
from penstock.stack.certificates import Authority
from tests.web_server import a_web_server

JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def with_login(**changed: str) -> dict[str, str]:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{JAAS} username="ana" password="hush";',
    }
    return given | {name.replace("_", "."): value for name, value in changed.items()}


@pytest.mark.parametrize(
    ("jaas", "password"),
    [
        (f'{JAAS} username="ana" password="hush";', "hush"),
        (f"{JAAS} username=ana password=hush;", "hush"),
        (f'{JAAS}  username = "ana"\n password="a\\"b\\\\c=;";', 'a"b\\c=;'),
        (f'kafkashaded.{JAAS} password="" username="ana";', ""),
    ],
)
def test_a_jaas_text_is_read_as_java_reads_it(jaas: str, password: str) -> None:
    login = security_of(with_login(sasl_jaas_config=jaas)).login
    assert login is not None
    assert (login.username, login.password) == ("ana", password)


def test_both_dialects_say_the_same() -> None:
    java = security_of(with_login())
    librdkafka = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "SCRAM-SHA-256"}
    other = security_of({**librdkafka, "sasl.username": "ana", "sasl.password": "hush"})
    assert java.librdkafka_settings() == other.librdkafka_settings()
    assert java.librdkafka_settings()["sasl.password"] == "hush"


def test_secrets_are_not_shown(authority: Authority) -> None:
    secret = secrets.token_hex(8)
    store = authority.issue("shown").pkcs12(secret)
    given = with_login(
        security_protocol="SASL_SSL",
        sasl_jaas_config=f'{JAAS} username="ana" password="{secret}";',
        ssl_keystore_location=str(store),
        ssl_keystore_password=secret,
    )
    shown = repr(client_options("localhost:9092", given))
    assert secret not in shown
    assert "PRIVATE KEY" not in shown


def test_what_is_given_for_a_protocol_that_is_not_used_is_not_looked_at() -> None:
    assert security_of({"ssl.truststore.location": "/nowhere", "sasl.mechanism": "GSSAPI"}).login is None
    assert security_of({"bootstrap.servers": "a:1"}) is NO_SECURITY


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"sasl.mechanism": ""}, "sasl.mechanism: must be given with SASL_PLAINTEXT: PLAIN, SCRAM-SHA-256, "),
        ({"sasl.mechanism": "DIGEST-MD5"}, "sasl.mechanism: 'DIGEST-MD5' cannot be used here; it must be PLAIN, "),
        ({"sasl.jaas.config": f"{JAAS};"}, "sasl.jaas.config: must hold username="),
        ({"sasl.jaas.config": f"{JAAS} username"}, "sasl.jaas.config: line 1: '=' is missing"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{JAAS} username="a" password="b" tokenauth=true;'},
            "sasl.jaas.config: delegation",
        ),
    ],
)  # fmt: skip
def test_a_login_that_cannot_be_used_is_named(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=f"^{complaint}") as caught:
        security_of(with_login() | changed)
    assert "hush" not in str(caught.value)


def test_a_token_is_a_login_of_ours_and_none_of_librdkafka() -> None:
    token = {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{JAAS} username="a" password="hush" tokenauth="true";',
    }
    security = security_of(with_login() | token)
    assert security.login is not None
    assert security.login.is_token
    with pytest.raises(BadOption, match=r"^sasl\.jaas\.config: librdkafka") as caught:
        security.librdkafka_settings()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("missing", ["sasl.username", "sasl.password"])
def test_half_a_login_is_named(missing: str) -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
    with pytest.raises(BadOption, match=f"^{missing}: must be given with SASL_SSL"):
        security_of({name: value for name, value in given.items() if name != missing})


def complaint_of(**given: str) -> str:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    with pytest.raises(BadOption) as caught:
        security_of({"security.protocol": "SSL", **properties})
    complaint = str(caught.value)
    assert "\n" not in complaint
    return complaint


def test_a_file_that_is_not_there_is_named() -> None:
    assert complaint_of(ssl_truststore_location="/nowhere/ca.pem") == (
        "ssl.truststore.location: cannot read '/nowhere/ca.pem': no such file or directory"
    )


def test_a_file_without_certificates_is_named(authority: Authority, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    key_only = tmp_path / "key.pem"
    key_only.write_text(authority.issue("key-only").key_text())
    assert complaint_of(ssl_ca_location=str(empty)) == "ssl.ca.location: holds no certificates"
    assert complaint_of(ssl_ca_location=str(broken)).startswith("ssl.ca.location: holds no certificates")
    assert complaint_of(ssl_keystore_location=str(key_only)) == "ssl.keystore.location: holds no certificate"
    assert (
        complaint_of(ssl_keystore_location=str(authority.path))
        == "ssl.keystore.location: holds no private key"
    )


def test_a_broken_file_of_java_s_own_format_is_named(tmp_path: Path) -> None:
    store = tmp_path / "trusted.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    cannot = f"ssl.truststore.location: cannot read {store}"
    assert complaint_of(ssl_truststore_location=str(store)) == f"{cannot}: it ends too early"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\3" + bytes(24))
    assert complaint_of(ssl_truststore_location=str(store)) == f"{cannot}: it has the version 3"


@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=5)))
def test_arbitrary_bytes_of_a_key_store_are_read_or_refused(rest: bytes, password: str | None) -> None:
    for head in (b"\xfe\xed\xfe\xed", b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1\0\0\0\1"):
        try:
            store = read_key_store(head + rest, password)
            for key in store.keys:
                key.unprotected("hush")
        except ValueError:
            pass


def test_a_password_that_opens_nothing_is_named(authority: Authority) -> None:
    client = authority.issue("locked")
    store, pem = str(client.pkcs12("hush")), str(client.pem("hush"))
    assert complaint_of(ssl_keystore_location=store).startswith(
        "ssl.keystore.password: must be given to open"
    )
    wrong = complaint_of(ssl_keystore_location=store, ssl_keystore_password="loud")
    assert wrong.startswith(f"ssl.keystore.password: does not open {store}")
    assert "loud" not in wrong
    assert complaint_of(ssl_keystore_location=pem).startswith("ssl.key.password: is missing")
    assert complaint_of(ssl_keystore_location=pem, ssl_key_password="loud").startswith(
        "ssl.key.password: does not"
    )


def test_a_key_that_belongs_to_another_certificate_is_named(authority: Authority) -> None:
    one, other = authority.issue("one"), authority.issue("other")
    given = {"ssl_keystore_key": one.key_text(), "ssl_keystore_certificate_chain": other.certificate_text()}
    assert complaint_of(**given).startswith("ssl.keystore.key: the private key is of another certificate")


def test_half_a_pair_is_named(authority: Authority) -> None:
    text = authority.issue("half").certificate_text()
    assert complaint_of(ssl_certificate_pem=text) == "ssl.key.pem: must be given with ssl.certificate.pem"


def test_a_listener_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, authority: Authority
) -> None:
    monkeypatch.setattr("penstock.client.connection.GREETING_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for protocol, complaint in (("PLAINTEXT", "no answer in time"), ("SSL", "it did not answer in time")):
            with pytest.raises(ReadFailed, match=complaint):
                penstock.arrow.read(
                    "orders",
                    bootstrap=f"127.0.0.1:{server.getsockname()[1]}",
                    options={"security.protocol": protocol, "ssl.ca.location": str(authority.path)},
                )


def test_what_answers_with_something_else_than_tls_is_told(authority: Authority) -> None:
    options = {"security.protocol": "SSL", "ssl.ca.location": str(authority.path)}
    with (
        a_web_server() as address,
        pytest.raises(ReadFailed, match=r"does not speak TLS \(option security\.protocol\)"),
    ):
        penstock.arrow.read("orders", bootstrap=address, options=options)


@pytest.mark.parametrize(
    "said",
    [
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:1006)"),
        ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF) (_ssl.c:992)"),  # Python 3.11.2
        ConnectionResetError(104, "Connection reset by peer"),
    ],
)
def test_a_listener_that_closes_the_connection_is_told_in_the_same_words_whatever_the_library_says(
    monkeypatch: pytest.MonkeyPatch, authority: Authority, said: OSError
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise said

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", closed)
    options = {"security.protocol": "SSL", "ssl.ca.location": str(authority.path)}
    complaint = r"it closed the connection; does it speak TLS\? \(option security\.protocol\)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ReadFailed, match=complaint):
            penstock.arrow.read("orders", bootstrap=address, options=options)


def test_tokens_want_an_endpoint_and_a_client() -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(BadOption, match=r"^sasl\.oauthbearer\.token\.endpoint\.url: must be given"):
        security_of({**given, "sasl.oauthbearer.token.endpoint.url": "file:///token"})
    given["sasl.oauthbearer.token.endpoint.url"] = "https://login.example.com/token"
    with pytest.raises(BadOption, match=r"^sasl.jaas.config: must hold clientId"):
        security_of(given)
    prefix = "sasl.oauthbearer.client.credentials.client"
    settings = security_of({**given, f"{prefix}.id": "a", f"{prefix}.secret": "b"}).librdkafka_settings()
    assert settings["sasl.oauthbearer.client.secret"] == "b"


def test_a_key_that_is_given_as_a_path_is_not_shown(authority: Authority) -> None:
    identity = authority.issue("shown")
    complaint = complaint_of(
        ssl_certificate_location=str(authority.path), ssl_key_location=identity.key_text()
    )
    assert complaint == "ssl.key.location: must be the path of a file, not what is in it"
    assert complaint_of(ssl_ca_location="a\0b") == "ssl.ca.location: is not the path of a file"
