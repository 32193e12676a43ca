"""Clients come in by TLS, by a certificate of their own, and by a login."""

import json
import socket
import ssl
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from penstock.client.connection import BrokerConnection
from penstock.client.security import security_of
from penstock.model.endpoints import Address
from penstock.security.principals import ANONYMOUS, Principal
from penstock.stack.certificates import Authority
from penstock.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.clients.driver import WAIT_S, wait_until
from tests.security.secured_broker import SecuredBroker

SHA256, SHA512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def client_options(broker: SecuredBroker, listener: str, **more: str) -> dict[str, str]:
    options = {"bootstrap.servers": broker.bootstrap(listener), "log_level": "0"}
    if listener in ("TLS", "MUTUAL"):
        options |= {"security.protocol": "ssl"}
    elif listener == "LOGIN":
        options |= {"security.protocol": "sasl_plaintext"}
    elif listener == "SECURE":
        options |= {"security.protocol": "sasl_ssl"}
    if listener in ("TLS", "MUTUAL", "SECURE"):
        options["ssl.ca.location"] = str(broker.authority.path)
    if listener == "MUTUAL":
        issued = broker.authority.issue("ana")
        options |= {"ssl.certificate.pem": issued.certificate_text(), "ssl.key.pem": issued.key_text()}
    return options | {name.replace("_", "."): value for name, value in more.items()}


def make_user(broker: SecuredBroker, name: str, password: str, mechanism: ScramMechanism = SHA512) -> None:
    admin = AdminClient(client_options(broker, "PLAINTEXT"))
    credential = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
    for future in admin.alter_user_scram_credentials([credential]).values():
        future.result(WAIT_S)


def write_and_read(options: dict[str, str], topic: str, *, size: int = 100, count: int = 10) -> None:
    """Records there and back, each as it was."""
    values = [bytes([number % 251]) * size for number in range(count)]
    producer = Producer({**options, "message.max.bytes": "8000000", "linger.ms": "5"})
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert not failures
    consumer = Consumer({**options, "group.id": f"group-{topic}", "enable.auto.commit": "false"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        read = []
        wait_until(
            lambda: read.extend(m.value() for m in consumer.consume(50, 0.2)) or len(read) >= count,
            "all records",
        )
        assert read == values
    finally:
        consumer.close()


LOGIN = {"sasl_mechanisms": "SCRAM-SHA-512", "sasl_username": "eva", "sasl_password": "s3cret"}


@pytest.mark.parametrize(
    ("listener", "login"),
    [
        ("TLS", {}),
        ("MUTUAL", {}),
        ("LOGIN", {"sasl_mechanisms": "PLAIN", "sasl_username": "ana", "sasl_password": 'p "a\\ss'}),
        ("LOGIN", LOGIN),
        ("SECURE", LOGIN),
        ("SECURE", {**LOGIN, "sasl_mechanisms": "SCRAM-SHA-256"}),
    ],
    ids=lambda value: value if isinstance(value, str) else value.get("sasl_mechanisms", "no login"),
)
def test_records_go_there_and_back(
    secured: SecuredBroker, topic_name: str, listener: str, login: dict[str, str]
) -> None:
    make_user(secured, "eva", "s3cret", SHA512)
    make_user(secured, "eva", "s3cret", SHA256)
    options = client_options(secured, listener, **login)
    write_and_read(options, topic_name)


def test_large_records_go_through_tls(secured: SecuredBroker, topic_name: str) -> None:
    """More than OpenSSL gives at once, than a buffer holds, and than a socket takes."""
    admin = AdminClient(client_options(secured, "PLAINTEXT"))
    from confluent_kafka.admin import NewTopic

    made = NewTopic(topic_name, 1, 1, config={"max.message.bytes": "8000000"})
    admin.create_topics([made])[topic_name].result(WAIT_S)
    write_and_read(client_options(secured, "TLS"), topic_name, size=3_000_000, count=12)


def refusal(options: dict[str, str]) -> KafkaError:
    """What the client is told that does not get in."""
    errors: list[KafkaError] = []
    admin = AdminClient({**options, "socket.timeout.ms": "3000", "error_cb": errors.append})  # type: ignore[dict-item]
    wait_until(lambda: admin.poll(0.1) is not None and bool(errors), "an error")
    return next((one for one in errors if one.code() != KafkaError._ALL_BROKERS_DOWN), errors[0])


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("PLAIN", "ana", "gu3ssed"),
        ("PLAIN", "nobody", "gu3ssed"),
        ("SCRAM-SHA-512", "eva", "gu3ssed"),
        ("SCRAM-SHA-512", "nobody", "gu3ssed"),
    ],
)
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(
    secured: SecuredBroker, mechanism: str, user: str, password: str
) -> None:
    make_user(secured, "eva", "s3cret")
    options = client_options(
        secured, "LOGIN", sasl_mechanisms=mechanism, sasl_username=user, sasl_password=password
    )
    told = refusal(options)
    assert told.code() == KafkaError._AUTHENTICATION
    expected = (
        "Invalid username or password" if mechanism == "PLAIN" else "invalid credentials with SASL mechanism"
    )
    assert expected in told.str()
    assert password not in secured.log()


def test_who_has_no_certificate_is_not_let_in(secured: SecuredBroker) -> None:
    options = client_options(secured, "MUTUAL")
    del options["ssl.certificate.pem"], options["ssl.key.pem"]
    with pytest.raises(KafkaException):
        AdminClient({**options, "socket.timeout.ms": "3000"}).list_topics(timeout=3)
    stranger = Authority(secured.directory / "strangers").issue("ana")
    options |= {"ssl.certificate.pem": stranger.certificate_text(), "ssl.key.pem": stranger.key_text()}
    with pytest.raises(KafkaException):
        AdminClient({**options, "socket.timeout.ms": "3000"}).list_topics(timeout=3)


def test_a_removed_user_does_not_get_in_again(secured: SecuredBroker) -> None:
    make_user(secured, "leo", "s3cret")
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    login = security_of({**properties, "sasl.username": "leo", "sasl.password": "s3cret"})
    address = Address("127.0.0.1", secured.ports["LOGIN"])
    connected = BrokerConnection(address, client_id="test", timeout_s=WAIT_S, security=login)
    connected.ask(MetadataRequest(topics=[]), MetadataResponse)
    admin = AdminClient(client_options(secured, "PLAINTEXT"))
    described = admin.describe_user_scram_credentials(["leo"])["leo"].result(WAIT_S)
    assert [(one.mechanism, one.iterations) for one in described.scram_credential_infos] == [(SHA512, 4096)]
    for future in admin.alter_user_scram_credentials([UserScramCredentialDeletion("leo", SHA512)]).values():
        future.result(WAIT_S)
    connected.ask(MetadataRequest(topics=[]), MetadataResponse)  # as in Kafka: what is open stays open
    connected.close()
    options = client_options(secured, "LOGIN", **{**LOGIN, "sasl_username": "leo"})
    assert refusal(options).code() == KafkaError._AUTHENTICATION


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    content = struct.pack(">hhih", api_key, version, 1, 1) + b"x" + body
    return struct.pack(">i", len(content)) + content


METADATA = frame(3, 1, b"\xff\xff\xff\xff")
HANDSHAKE_V0 = frame(17, 0, b"\x00\x05PLAIN")


def connect(secured: SecuredBroker, listener: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", secured.ports[listener]), timeout=10)


def ends(client: socket.socket) -> bool:
    """The broker closes the connection, whatever it may say before."""
    try:
        client.shutdown(socket.SHUT_WR)
        while client.recv(1000):
            pass
    except (ConnectionError, OSError) as error:
        return not isinstance(error, TimeoutError)
    return True


def test_before_a_login_nothing_is_answered(secured: SecuredBroker) -> None:
    with connect(secured, "LOGIN") as client:
        client.sendall(METADATA)
        assert client.recv(100) == b""
    with connect(secured, "LOGIN") as client:  # a frame that is larger than any token may be
        client.sendall(struct.pack(">i", 1_000_000) + bytes(100))
        assert client.recv(100) == b""
    wait_until(
        lambda: "a request of 1000000 bytes; at most 524288 (" in secured.log(), "a line with both numbers"
    )


BEFORE_A_LOGIN = (17, 18, 36)
"""SaslHandshake, ApiVersions, SaslAuthenticate."""


@pytest.mark.parametrize("listener", ["LOGIN", "SECURE"])
def test_no_other_api_is_answered_before_a_login(secured: SecuredBroker, listener: str) -> None:
    """Each key that there is, and some that are not."""
    context = ssl.create_default_context(cafile=str(secured.authority.path))
    answered = []
    for api_key in (*range(100), 999, -1, 32767):
        with connect(secured, listener) as plain:
            client = plain
            if listener == "SECURE":
                client = context.wrap_socket(plain, server_hostname="127.0.0.1")
            with client:
                client.sendall(frame(api_key, 1, bytes(20)))
                if client.recv(100):
                    answered.append(api_key)
    assert tuple(answered) == BEFORE_A_LOGIN


def principals(secured: SecuredBroker, name: str) -> Principal:
    """Who somebody with a certificate of that name is, where one is asked for but not wanted."""
    properties = {"security.protocol": "SSL", "ssl.truststore.location": str(secured.authority.path)}
    if name:
        properties["ssl.keystore.location"] = str(secured.authority.issue(name).pem())
    connection = BrokerConnection(
        Address("127.0.0.1", secured.ports["TLS"]),
        client_id="test",
        timeout_s=WAIT_S,
        security=security_of(properties),
    )
    try:
        answer = connection.ask(
            CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), CreateDelegationTokenResponse
        )
    finally:
        connection.close()
    return Principal(answer.principal_type, answer.principal_name)


def test_a_certificate_may_be_shown_where_none_is_required(tmp_path: Path, authority: Authority) -> None:
    wanted = {"listener.name.tls.ssl.client.auth": "requested"}
    with SecuredBroker(tmp_path / "broker", authority, **wanted) as broker:
        assert principals(broker, "") == ANONYMOUS
        assert principals(broker, "ana").name.startswith("CN=ana")
        stranger = Authority(tmp_path / "other").issue("mallory")
        options = client_options(broker, "TLS")
        options |= {"ssl.certificate.pem": stranger.certificate_text(), "ssl.key.pem": stranger.key_text()}
        with pytest.raises(KafkaException):
            AdminClient({**options, "socket.timeout.ms": "3000"}).list_topics(timeout=3)


def test_tokens_of_old_clients_come_without_a_header(secured: SecuredBroker) -> None:
    with connect(secured, "LOGIN") as client:
        client.sendall(HANDSHAKE_V0)
        size = struct.unpack(">i", client.recv(4))[0]
        assert client.recv(size)[4:6] == b"\0\0"
        token = b"\0bob\0bobs"
        client.sendall(struct.pack(">i", len(token)) + token)
        assert client.recv(4) == b"\0\0\0\0"
        client.sendall(METADATA)
        assert struct.unpack(">i", client.recv(4))[0] > 4


@pytest.mark.parametrize("listener", ["TLS", "SECURE"])
@pytest.mark.parametrize(
    "garbage", [METADATA, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(300), b"\0"]
)
def test_what_is_no_tls_is_closed_and_others_are_served(
    secured: SecuredBroker, listener: str, garbage: bytes, topic_name: str
) -> None:
    with (
        connect(secured, listener) as client,
        connect(secured, listener),
    ):  # the second one says nothing at all
        client.sendall(garbage)
        assert ends(client)
        write_and_read(client_options(secured, "TLS"), topic_name, count=2)


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path, authority: Authority) -> None:
    def shown(broker: SecuredBroker) -> bytes | None:
        context = ssl.create_default_context(cafile=str(authority.path))
        with (
            connect(broker, "TLS") as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
        ):
            return client.getpeercert(binary_form=True)

    with SecuredBroker(tmp_path / "broker", authority) as broker:
        first = shown(broker)
        broker.key_store.write_text("no certificate")
        wait_until(lambda: "the certificate stays" in broker.log(), "the complaint")
        assert shown(broker) == first
        renewed = authority.issue("renewed")
        broker.key_store.write_text(renewed.key_text() + renewed.certificate_text())
        wait_until(lambda: shown(broker) != first, "the new certificate")


def test_a_login_that_is_not_repeated_in_time_ends(tmp_path: Path, authority: Authority) -> None:
    with SecuredBroker(tmp_path / "broker", authority, **{"connections.max.reauth.ms": "1000"}) as broker:
        login = {"sasl_mechanisms": "PLAIN", "sasl_username": "bob", "sasl_password": "bobs"}
        # librdkafka logs in again by itself, and goes on
        admin = AdminClient(client_options(broker, "LOGIN", **login))
        admin.list_topics(timeout=WAIT_S)
        with connect(broker, "LOGIN") as client:
            client.sendall(frame(17, 1, b"\x00\x05PLAIN"))
            client.recv(struct.unpack(">i", client.recv(4))[0])
            token = b"\0bob\0bobs"
            client.sendall(frame(36, 1, struct.pack(">i", len(token)) + token))
            answer = client.recv(struct.unpack(">i", client.recv(4))[0])
            assert struct.unpack(">q", answer[-8:])[0] == 1000
            client.sendall(METADATA)
            assert client.recv(struct.unpack(">i", client.recv(4))[0])

            def is_over() -> bool:
                client.sendall(METADATA)
                size = client.recv(4)
                return not size or not client.recv(struct.unpack(">i", size)[0])

            wait_until(is_over, "the end of the login")
        admin.list_topics(timeout=WAIT_S)


def test_a_connection_of_ours_logs_in_again_before_its_login_ends(
    tmp_path: Path, authority: Authority
) -> None:
    """Between the requests of one who asks all the time; and one who was silent for longer comes in again, too."""
    with SecuredBroker(tmp_path / "broker", authority, **{"connections.max.reauth.ms": "1000"}) as broker:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": "bobs"}
        security = security_of({"security.protocol": "SASL_PLAINTEXT", **login})
        address = Address("127.0.0.1", broker.ports["LOGIN"])
        connection = BrokerConnection(address, client_id="test", timeout_s=WAIT_S, security=security)
        ends = {connection.renewed_at_s}

        def has_asked_for_three_lives() -> bool:
            connection.ask(MetadataRequest(topics=[]), MetadataResponse)
            ends.add(connection.renewed_at_s)
            return len(ends) > 3

        wait_until(has_asked_for_three_lives, "three logins on one connection")
        over_s = connection.renewed_at_s + 1
        wait_until(lambda: time.monotonic() > over_s, "the end of the login")
        connection.ask(MetadataRequest(topics=[]), MetadataResponse)
        connection.close()
        assert "its login is over" not in broker.log()


def test_users_are_made_by_the_command(secured: SecuredBroker) -> None:
    def penstock(*words: str, given: str | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "penstock", "users", *words, "-b", secured.bootstrap("PLAINTEXT")],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    penstock("set", "zoe", "--password-file", "-", given="pass word\n")
    listed = json.loads(penstock("list", "-o", "json"))
    assert {"user": "zoe", "mechanism": "SCRAM-SHA-512", "iterations": 8192} in listed
    options = client_options(
        secured, "SECURE", **{**LOGIN, "sasl_username": "zoe", "sasl_password": "pass word"}
    )
    AdminClient(options).list_topics(timeout=WAIT_S)
    penstock("remove", "zoe")
    assert "zoe" not in penstock("list", "-o", "json")


def test_certificates_are_made_by_the_command(tmp_path: Path) -> None:
    def certs(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock", "certs", *words, "--dir", str(tmp_path / "certs")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def properties(text: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in text.splitlines())

    server = properties(certs("broker", "broker-1", "--host", "127.0.0.1").stdout)
    client = properties(certs("client", "ana").stdout)
    for name in ("ca.key", "broker-1.pem", "ana.pem"):
        assert (tmp_path / "certs" / name).stat().st_mode & 0o077 == 0
    refused = certs("client", "../ana")
    assert refused.returncode == 1
    assert "cannot be a name" in refused.stderr
    with SecuredBroker(tmp_path / "broker", Authority(tmp_path / "certs"), **server) as broker:
        address = Address("127.0.0.1", broker.ports["MUTUAL"])
        connection = BrokerConnection(
            address, client_id="test", timeout_s=WAIT_S, security=security_of(client)
        )
        connection.ask(MetadataRequest(topics=[]), MetadataResponse)
        connection.close()


@pytest.mark.parametrize("version", [0, 1])
def test_one_connection_has_one_guess(secured: SecuredBroker, version: int) -> None:
    """Guesses that come together with the first one are not looked at, not even the right one."""
    tokens = [b"\0bob\0no", b"\0bob\0bobs"]
    with connect(secured, "LOGIN") as client:
        client.sendall(frame(17, version, b"\x00\x05PLAIN"))
        client.recv(struct.unpack(">i", client.recv(4))[0])
        sized = [struct.pack(">i", len(token)) + token for token in tokens]
        client.sendall(b"".join(sized if version == 0 else [frame(36, 1, one) for one in sized]) + METADATA)
        answers = b""
        while chunk := client.recv(4096):
            answers += chunk
    if version == 0:
        assert answers == b""
    else:
        (size,) = struct.unpack_from(">i", answers)
        assert len(answers) == 4 + size, "more than the one refusal"
        assert answers[8:10] == struct.pack(">h", 58)


@pytest.mark.parametrize("size", [5_000, 500_000])
def test_long_tokens_are_refused_without_a_look(secured: SecuredBroker, size: int, topic_name: str) -> None:
    with connect(secured, "LOGIN") as client:
        client.sendall(frame(17, 1, b"\x00\x0dSCRAM-SHA-256"))
        client.recv(struct.unpack(">i", client.recv(4))[0])
        token = b"n,,n=" + b"a" * size
        client.sendall(frame(36, 1, struct.pack(">i", len(token)) + token))
        answer = client.recv(struct.unpack(">i", client.recv(4))[0])
        assert answer[4:6] == struct.pack(">h", 58)
    assert "a" * 200 not in secured.log()
