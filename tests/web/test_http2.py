"""HTTP/2 and websockets beside HTTP/1.1 on one port."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import httpx2
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, RejectConnection, Request, TextMessage

from tests.web.services import WebProcess, echo_service

DEADLINE_S = 30.0
LIMITS = {
    "max.request.header.size": "4096",
    "penstock.request.max.bytes": "3000000",
    "idle.timeout.ms": "3000",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    running = echo_service(tmp_path_factory.mktemp("http2"), LIMITS)
    yield running
    assert running.close() == 0


@pytest.fixture
def client(service: WebProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(http1=False, http2=True, base_url=service.url, timeout=DEADLINE_S) as made:
        yield made


def test_requests_are_answered_as_with_the_older_protocol(client: httpx2.Client, service: WebProcess) -> None:
    answer = client.get("/echo/a%2Fb", params={"times": "2"})
    assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
    assert answer.json()["word"] == "a/ba/b"
    assert client.post("/echo", json={"a": [1] * 100_000}).json() == {"a": [1] * 100_000}
    assert client.get("/stream").text == "0\n1\n2\n"
    assert client.get("/refused").json()["error_code"] == 40401
    assert client.get("/bug").status_code == 500
    assert client.head("/echo/x").content == b""
    assert service.ask("GET", "/echo/x").json()["word"] == "x"


def test_a_body_is_as_large_as_windows_allow_at_a_time(client: httpx2.Client) -> None:
    body = client.get("/large", params={"chunks": "40"}).content
    assert body == b"".join(bytes([number]) * 100_000 for number in range(40))


def test_a_body_beyond_the_bound_is_refused_and_the_connection_goes_on(client: httpx2.Client) -> None:
    assert client.post("/echo", content=b" " * 3_000_001).status_code == 413
    assert client.get("/echo/x").status_code == 200


class Raw:
    """A connection of HTTP/2 with the library's own client."""

    def __init__(self, service: WebProcess) -> None:
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=DEADLINE_S)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.events: list[Any] = []
        self.is_closed = False

    def get(self, path: str, *more: tuple[str, str]) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        head = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "x"), *more]
        self.h2.send_headers(stream_id, head, end_stream=True)
        return stream_id

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def until(self, condition: Callable[[], Any], *, acknowledges: bool = True) -> None:
        end_s = time.monotonic() + DEADLINE_S
        with contextlib.suppress(ConnectionError):  # closed by then: what it said before can still be read
            self.flush()
        while not condition():
            assert time.monotonic() < end_s, self.events
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                self.is_closed = True
                assert condition(), self.events
                return
            found = self.h2.receive_data(data)
            for event in found:
                if acknowledges and isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.events += found
            self.flush()

    def ended(self) -> set[int]:
        return {each.stream_id for each in self.events if isinstance(each, h2.events.StreamEnded)}

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def raw(service: WebProcess) -> Iterator[Raw]:
    made = Raw(service)
    yield made
    made.close()


def test_streams_do_not_wait_for_one_another(raw: Raw) -> None:
    slow = raw.get("/wait?seconds=20")
    quick = [raw.get("/echo/x") for _ in range(10)]
    raw.until(lambda: raw.ended() >= set(quick))
    assert slow not in raw.ended()


def test_a_client_that_does_not_read_holds_back_its_own_stream_only(raw: Raw) -> None:
    large = raw.get("/large?chunks=30")
    raw.until(lambda: raw.h2.remote_flow_control_window(large) <= 0, acknowledges=False)
    raw.h2.increment_flow_control_window(1 << 20)  # the connection's, not the stream's
    quick = raw.get("/echo/x")
    raw.until(lambda: quick in raw.ended(), acknowledges=False)
    assert large not in raw.ended()
    raw.h2.reset_stream(large)
    last = raw.get("/echo/y")
    raw.until(lambda: last in raw.ended())


def test_the_beginning_may_come_in_pieces(service: WebProcess) -> None:
    raw = Raw(service)
    raw.get("/echo/x")
    data = raw.h2.data_to_send()
    for at in range(30):
        raw.socket.sendall(data[at : at + 1])
    raw.socket.sendall(data[30:])
    raw.until(lambda: raw.ended())
    raw.close()


def test_what_breaks_the_rules_ends_the_connection(service: WebProcess) -> None:
    for data in (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100):
        service.raw(data)
    raw = Raw(service)
    raw.get("/echo/x", ("x-large", "y" * 5000))
    raw.until(lambda: raw.is_closed)
    raw.close()
    raw = Raw(service)
    raw.flush()
    for _ in range(1010):  # begun and dropped
        raw.h2.reset_stream(raw.get("/wait?seconds=20"))
        try:
            raw.flush()
        except OSError:
            break
    try:
        raw.until(lambda: raw.is_closed)
    except OSError:
        pass
    raw.close()
    assert service.ask("GET", "/echo/x").status == 200


def test_a_connection_without_streams_is_closed_after_a_while(raw: Raw) -> None:
    first = raw.get("/echo/x")
    raw.until(lambda: first in raw.ended())
    raw.until(lambda: raw.is_closed)
    assert any(isinstance(each, h2.events.ConnectionTerminated) for each in raw.events)


def test_a_stop_waits_for_the_streams_that_are_there(tmp_path: Path) -> None:
    service = echo_service(tmp_path, {})
    raw = Raw(service)
    slow = raw.get("/wait?seconds=1")
    raw.get("/echo/x")
    raw.until(lambda: raw.ended())
    assert service.close() == 0
    raw.until(lambda: raw.is_closed)
    assert slow in raw.ended()
    raw.close()


# ------------------------------------------------------------------------------------------------ websockets


class WebSocket:
    def __init__(self, service: WebProcess, target: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=DEADLINE_S)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.socket.sendall(self.protocol.send(Request(host="x", target=target)))
        self.events: list[Any] = []

    def until(self, kind: type) -> Any:
        while not any(isinstance(each, kind) for each in self.events):
            data = self.socket.recv(65536)
            assert data, self.events
            self.protocol.receive_data(data)
            self.events += self.protocol.events()
        return next(each for each in self.events if isinstance(each, kind))

    def close(self) -> None:
        self.socket.close()


def test_a_websocket_gives_what_its_handler_sends(service: WebProcess) -> None:
    web_socket = WebSocket(service, "/echo-socket?word=hi")
    web_socket.until(AcceptConnection)
    assert web_socket.until(TextMessage).data == "hi by User:ANONYMOUS"
    assert web_socket.until(CloseConnection).code == 1000
    web_socket.close()


def test_what_goes_wrong_with_a_websocket_is_told(service: WebProcess) -> None:
    web_socket = WebSocket(service, "/no-such-socket")
    assert web_socket.until(RejectConnection).status_code == 404
    web_socket.close()
    web_socket = WebSocket(service, "/echo-socket?word=hi&bug=1")
    closed = web_socket.until(CloseConnection)
    assert (closed.code, closed.reason) == (1011, "Internal Server Error")
    web_socket.close()
    web_socket = WebSocket(service, "/echo-socket?word=hi&wait=1")
    web_socket.until(TextMessage)
    web_socket.close()  # and the handler ends


def test_a_websocket_needs_the_login_of_its_service(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: secret,admin\n")
    given = {"authentication.method": "BASIC", "penstock.authentication.users.file": str(users)}
    service = echo_service(tmp_path, given)
    web_socket = WebSocket(service, "/echo-socket?word=hi")
    assert web_socket.until(RejectConnection).status_code == 401
    web_socket.close()
    with httpx2.Client(http1=False, http2=True, base_url=service.url, timeout=DEADLINE_S) as client:
        assert client.get("/echo/x").status_code == 401
        assert client.get("/echo/x", auth=("ann", "secret")).json()["by"] == "User:ann"
    assert service.close() == 0
