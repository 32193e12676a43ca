"""What each HTTP service does as all others do: a row in `services.SERVICES` is asked all of it."""

import re
import socket
import time
from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.web.services import SERVICES, TIMEOUT_S, Service, WebProcess

LIMITS = {
    "penstock.request.max.bytes": "1000",
    "max.request.header.size": "4000",
    "idle.timeout.ms": "60000",
    "shutdown.graceful.ms": "60000",
}


@pytest.fixture(scope="module", params=SERVICES, ids=[service.name for service in SERVICES])
def service(request: pytest.FixtureRequest) -> Service:
    found: Service = request.param
    return found


@pytest.fixture(scope="module")
def running(
    service: Service, broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    process = service.start(tmp_path_factory.mktemp(f"all-{service.name}"), LIMITS, broker.bootstrap)
    yield process
    assert process.close() == 0
    assert "Traceback" not in process.log


def test_it_says_where_it_listens_in_its_own_name(service: Service, running: WebProcess) -> None:
    assert f"penstock {service.name}: listening on http://127.0.0.1:{running.port}\n" in running.log


def test_what_is_not_there_has_a_code_and_a_message(service: Service, running: WebProcess) -> None:
    missing = running.ask("GET", "/nowhere/at/all")
    assert missing.status == 404
    document = missing.json()
    assert (document["error_code"], document["message"]) == (service.code(404), "HTTP 404 Not Found")
    assert running.ask("PATCH", "/health").json()["error_code"] == service.code(405)


def test_answers_have_the_headers_of_confluents_services(service: Service, running: WebProcess) -> None:
    headers = running.ask("GET", service.get, headers={"X-Request-Id": "mine"}).headers
    assert headers["x-request-id"] == "mine"
    assert headers["x-xss-protection"] == "1; mode=block"
    assert headers["cache-control"] == "no-cache, no-store, must-revalidate"
    assert "strict-transport-security" not in headers


def test_content_types_and_bodies_are_checked(service: Service, running: WebProcess) -> None:
    def code(body: bytes, content_type: str = "application/json") -> int:
        found: int = running.ask("POST", service.post, body, {"Content-Type": content_type}).json()[
            "error_code"
        ]
        return found

    assert code(b"{") == service.code(service.malformed)
    assert code(b"a: 1", "text/yaml") == service.code(415)
    assert code(b"[" + b" " * 2000 + b"]") == service.code(413)
    refused = running.ask("GET", service.get, headers={"Accept": "text/html"})
    assert refused.json()["error_code"] == service.code(406)
    assert b" 431 " in running.raw(b"GET / HTTP/1.1\r\nx: " + b"y" * 5000 + b"\r\n\r\n")


def test_health_numbers_and_description_are_there(service: Service, running: WebProcess) -> None:
    assert running.ask("GET", "/health").json()["status"] == service.health
    running.ask("GET", service.get)
    assert (
        f"penstock_{service.name.replace('-', '_')}_http_requests_total"
        in running.ask("GET", "/metrics").body.decode()
    )
    described = running.ask("GET", "/openapi.json").json()
    assert re.match(r"3\.", described["openapi"])
    assert not any(path.startswith("/contexts/{context}/") for path in described["paths"])
    assert b"<table>" in running.ask("GET", "/docs").body


class SlowRequest:
    """A request of which the last byte of the body is still to come."""

    def __init__(self, process: WebProcess, path: str, *, login: str = "") -> None:
        headers = (
            f"host: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n{login}connection: close\r\n"
        )
        self._socket = socket.create_connection(("127.0.0.1", process.port), timeout=TIMEOUT_S)
        self._socket.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\n{{".encode())

    def __enter__(self) -> "SlowRequest":
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def send_the_rest(self) -> None:
        self._socket.sendall(b"}")

    def answer(self) -> bytes:
        found = b""
        while chunk := self._socket.recv(65536):
            found += chunk
        return found


def wait_until_it_is_served(process: WebProcess) -> None:
    """Beside the question itself."""
    deadline = time.monotonic() + TIMEOUT_S
    while b"_in_flight 2.0" not in process.ask("GET", "/metrics").body:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_slow_request_holds_up_no_other(service: Service, running: WebProcess) -> None:
    with SlowRequest(running, service.post) as slow:
        wait_until_it_is_served(running)
        for _ in range(5):
            assert running.ask("GET", service.get).status == 200
        slow.send_the_rest()
        assert slow.answer().startswith(b"HTTP/1.1 ")


@pytest.fixture(scope="module")
def guarded(
    service: Service, broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    directory = tmp_path_factory.mktemp("users")
    (directory / "users").write_text("ana: secret,user\n")
    options = {
        "authentication.method": "BASIC",
        "penstock.authentication.users.file": str(directory / "users"),
        "penstock.request.timeout.ms": "1500",
    }
    process = service.start(directory / f"guarded-{service.name}", options, broker.bootstrap)
    yield process
    assert process.close() == 0


def test_logins_are_asked_of_everybody(service: Service, guarded: WebProcess) -> None:
    def status(path: str, login: str | None = None) -> int:
        """On a busy machine a request may meet the limit of the test below."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := guarded.ask("GET", path, login=login).status) == 408:
            assert time.monotonic() < deadline
        return found

    refused = guarded.ask("GET", service.get)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Basic realm="penstock"')
    assert status(service.get, "ana:wrong") == 401
    assert status(service.get, "ana:secret") == 200
    assert status("/health") == 200
    assert status("/metrics") == 401


def test_a_request_has_a_time(service: Service, guarded: WebProcess) -> None:
    with SlowRequest(guarded, service.post, login="authorization: Basic YW5hOnNlY3JldA==\r\n") as slow:
        answer = slow.answer()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"error_code":408' in answer


def test_a_request_that_is_being_served_ends_before_the_service(
    service: Service, running: WebProcess
) -> None:
    """The last one: the service is gone then."""
    with SlowRequest(running, service.post) as slow:
        wait_until_it_is_served(running)
        running.process.terminate()
        deadline = time.monotonic() + TIMEOUT_S
        while is_listening(running):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        slow.send_the_rest()
        assert slow.answer().startswith(b"HTTP/1.1 ")
    assert running.close() == 0


def is_listening(process: WebProcess) -> bool:
    try:
        socket.create_connection(("127.0.0.1", process.port), timeout=TIMEOUT_S).close()
    except OSError:
        return False
    return True
