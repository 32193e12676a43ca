"""Brokers that are broken, or mean harm: a reader says what is wrong, soon, and takes no more memory than they send."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

import penstock.arrow
from penstock.arrow import ReadFailed
from penstock.client.connection import BrokerConnection
from penstock.client.errors import AccessRefused
from penstock.client.fetching import Range, fetch
from penstock.client.options import client_options
from penstock.client.security import Login, security_of
from penstock.client.topics import Client
from penstock.credentials.tokens import NoToken, token_of
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.wire.messages.metadata import MetadataResponse
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.unit.client.hostile_broker import (
    END_OFFSET,
    HostileBroker,
    cleanup_policy,
    hostile_broker,
    metadata,
)

IMPATIENT = {"default.api.timeout.ms": 300, "request.timeout.ms": 1_000}
SECRET = "hush-hush"


def read_all(broker: HostileBroker) -> None:
    client = Client(client_options(broker.bootstrap, IMPATIENT))
    try:
        topic = client.topic("orders")
        for _ in fetch(client, topic, {0: Range(0, END_OFFSET)}, isolation_level=1):
            pass
    finally:
        client.close()


def fetched(records: bytes, *, log_end: int = END_OFFSET) -> FetchResponse:
    partition = PartitionData(
        partition_index=0,
        high_watermark=log_end,
        last_stable_offset=log_end,
        log_start_offset=0,
        records=records,
    )
    topic = FetchableTopicResponse(topic="orders", topic_id=bytes(range(16)), partitions=[partition])
    return FetchResponse(responses=[topic])


def batch_header(base_offset: int, last_offset_delta: int) -> bytes:
    return struct.pack(">qi11xi34x", base_offset, 49, last_offset_delta)


@pytest.mark.parametrize(
    ("records", "cause"),
    [
        (batch_header(-5, 0), "holds no batch with records from offset 0 on"),
        (batch_header(2**63 - 1, 5), "holds no batch with records from offset 0 on"),
        (b"x" * 200, "holds no batch with records from offset 0 on"),
    ],
    ids=["behind", "wrapped", "noise"],
)
def test_records_that_lead_nowhere_are_not_asked_for_without_end(records: bytes, cause: str) -> None:
    with hostile_broker({ApiKey.FETCH: lambda _: fetched(records)}) as broker:
        with pytest.raises(ReadFailed, match=f"orders-0: .*{cause}"):
            read_all(broker)
        assert broker.asked.count(ApiKey.FETCH) < 20


def test_a_partition_that_is_left_out_is_not_asked_for_without_end() -> None:
    with hostile_broker({ApiKey.FETCH: lambda _: FetchResponse()}) as broker:
        with pytest.raises(ReadFailed, match="orders-0: the broker leaves it out"):
            read_all(broker)
        assert broker.asked.count(ApiKey.FETCH) < 20


def test_one_answer_without_records_does_not_end_a_read() -> None:
    answers = iter([fetched(b""), fetched(b""), fetched(batch_header(0, END_OFFSET - 1))])
    with hostile_broker({ApiKey.FETCH: lambda _: next(answers)}) as broker:
        read_all(broker)
        assert broker.asked.count(ApiKey.FETCH) == 3


def test_a_log_that_goes_on_and_is_not_sent_is_an_error() -> None:
    with (
        hostile_broker({ApiKey.FETCH: lambda _: fetched(b"")}) as broker,
        pytest.raises(ReadFailed, match="orders-0: the broker sends nothing from offset 0 on"),
    ):
        read_all(broker)


def test_the_rest_of_a_range_may_have_been_compacted_away() -> None:
    answers = {
        ApiKey.FETCH: lambda _: fetched(b""),
        ApiKey.DESCRIBE_CONFIGS: lambda _: cleanup_policy("compact,delete"),
    }
    with hostile_broker(answers) as broker:
        read_all(broker)


@pytest.mark.parametrize("body", [b"", b"\0" * 3, b"\xff" * 60], ids=["nothing", "cut", "noise"])
def test_an_answer_that_cannot_be_read_is_told(body: bytes) -> None:
    with (
        hostile_broker({ApiKey.FETCH: lambda _: body}) as broker,
        pytest.raises(ReadFailed, match=r"orders-0: the broker at .* stopped answering: "),
    ):
        read_all(broker)


def test_an_answer_without_its_header_is_told() -> None:
    with (
        hostile_broker({ApiKey.FETCH: lambda _: b""}, size=4) as broker,
        pytest.raises(ReadFailed, match="the answer ends in its header"),
    ):
        read_all(broker)


def test_memory_is_not_taken_for_what_is_said_but_not_sent() -> None:
    tracemalloc.start()
    try:
        with (
            hostile_broker({ApiKey.FETCH: lambda _: fetched(b"x" * 200)}, size=2**31 - 1) as broker,
            pytest.raises(ReadFailed, match="stopped answering: timed out"),
        ):
            read_all(broker)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_an_answer_of_more_than_is_trusted_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.fetching.TRUSTED_BYTES", 100)
    records = batch_header(0, END_OFFSET - 1) + bytes(range(256)) * 1000
    with hostile_broker({ApiKey.FETCH: lambda _: fetched(records)}) as broker:
        client = Client(client_options(broker.bootstrap, IMPATIENT))
        pieces = fetch(client, client.topic("orders"), {0: Range(0, END_OFFSET)}, isolation_level=1)
        assert [bytes(piece.records) for piece in pieces] == [records]
        client.close()


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", 99_999), ("127.0.0.1", -1), ("a" * 64 + ".example", 1), ("a..b", 1), ("a\0b", 1), ("", 0)],
)
def test_a_broker_that_is_said_to_be_nowhere_cannot_be_reached(host: str, port: int) -> None:
    with (
        hostile_broker({ApiKey.METADATA: lambda _: metadata(host, port)}) as broker,
        pytest.raises(ReadFailed, match="cannot reach the broker at "),
    ):
        penstock.arrow.read("orders", bootstrap=broker.bootstrap, options=IMPATIENT)


def test_an_answer_about_no_topic_is_told() -> None:
    with (
        hostile_broker({ApiKey.METADATA: lambda _: MetadataResponse()}) as broker,
        pytest.raises(ReadFailed, match="orders: the broker did not answer what was asked"),
    ):
        penstock.arrow.read("orders", bootstrap=broker.bootstrap, options=IMPATIENT)


@pytest.mark.parametrize("highest", [32_767, -7])
def test_versions_that_do_not_exist_are_not_spoken(highest: int) -> None:
    def answer(version: int) -> bytes:
        # In version 0, as a refusal always is: its error and an array of one range.
        return struct.pack(">hihhh", 35, 1, ApiKey.API_VERSIONS, 0, highest)

    with (
        hostile_broker({ApiKey.API_VERSIONS: answer}) as broker,
        pytest.raises(ReadFailed, match="it refused ApiVersions with error 35"),
    ):
        penstock.arrow.read("orders", bootstrap=broker.bootstrap, options=IMPATIENT)


def test_a_broker_that_sends_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.connection.GREETING_TIMEOUT_S", 0.5)
    stopped = threading.Event()

    def dribble() -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(struct.pack(">i", 100_000))
            while not stopped.wait(0.05):
                connection.sendall(b"\0")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            with pytest.raises(ReadFailed, match="no answer in time"):
                penstock.arrow.read("orders", bootstrap=f"127.0.0.1:{server.getsockname()[1]}")
        finally:
            stopped.set()
            thread.join()


def log_in(broker: HostileBroker, mechanism: str) -> BrokerConnection:
    security = security_of(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "ana",
            "sasl.password": SECRET,
        }
    )
    return BrokerConnection(Address("127.0.0.1", broker.port), client_id="c", timeout_s=4, security=security)


@pytest.mark.parametrize(
    "said",
    [b"", b"r=", b"x", b"=,=,=", b"\xff", b"r=a,s=b,i=c", b"r=a,s=QQ==,i=99999999999", b"e=no", b"r=a,r=b", b"," * 100],
)  # fmt: skip
def test_a_login_that_goes_astray_is_refused(said: bytes) -> None:
    answers = {
        ApiKey.SASL_HANDSHAKE: lambda _: SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]),
        ApiKey.SASL_AUTHENTICATE: lambda _: SaslAuthenticateResponse(auth_bytes=said),
    }
    with hostile_broker(answers) as broker, pytest.raises(AccessRefused, match="failed"):
        log_in(broker, "SCRAM-SHA-256")


def test_a_password_that_a_broker_repeats_is_not_shown() -> None:
    answers = {
        ApiKey.SASL_HANDSHAKE: lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        ApiKey.SASL_AUTHENTICATE: lambda _: SaslAuthenticateResponse(
            error_code=58, error_message=f"not\n{SECRET}, " + "x" * 30_000
        ),
    }
    with hostile_broker(answers) as broker, pytest.raises(AccessRefused) as refused:
        log_in(broker, "PLAIN")
    assert "refused the login of 'ana': not …, xxx" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value)) < 500


@contextlib.contextmanager
def token_endpoint(status: int, body: bytes, location: str = "") -> Iterator[tuple[Login, list[str]]]:
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))  # else the end of it is a reset
            if status:
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/token"
            yield Login("OAUTHBEARER", "ana", SECRET, "sasl.jaas.config", url), seen
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"[" * 200_000),
        (200, b"[]"),
        (200, b'{"access_token": "t", "expires_in": []}'),
        (200, b""),
        (0, b"nothing of HTTP\r\n\r\n"),
        (0, b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
        (0, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    ],
)
def test_an_endpoint_that_gives_no_token_is_told(status: int, body: bytes) -> None:
    with token_endpoint(status, body) as (login, _), pytest.raises(NoToken, match="with a token"):
        token_of(login.token_source)


def test_the_secret_is_not_taken_along_to_another_place() -> None:
    with (
        token_endpoint(200, json.dumps({"access_token": "t"}).encode()) as (other, others),
        token_endpoint(302, b"", location=other.token_endpoint) as (login, _),
    ):
        with pytest.raises(NoToken, match="gives no token: 302"):
            token_of(login.token_source)
        assert others == []
