"""What every HTTP service does alike, seen at a small one."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.web.users_file import hashed
from tests.web.services import TIMEOUT_S, WebProcess, echo_service

LIMITS = {
    "penstock.request.max.bytes": "1000",
    "penstock.request.timeout.ms": "500",
    "idle.timeout.ms": "1000",
    "max.request.header.size": "4000",
}


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    service = echo_service(tmp_path_factory.mktemp("echo"), LIMITS)
    yield service
    assert service.close() == 0


def test_a_path_is_matched_before_it_is_decoded(echo: WebProcess) -> None:
    assert echo.ask("GET", "/echo/a%2Fb%20%C3%A4").json()["word"] == "a/b ä"
    assert echo.ask("GET", "/echo/x?times=3").json() == {"word": "xxx", "by": "User:ANONYMOUS"}
    assert echo.ask("GET", "/echo/%FF").status == 400
    assert echo.ask("GET", "/echo/x?times=two").status == 404


def test_refusals_have_a_code_and_a_message(echo: WebProcess) -> None:
    missing = echo.ask("GET", "/nowhere")
    assert (missing.status, missing.json()) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    refused = echo.ask("GET", "/refused")
    assert (refused.status, refused.json()) == (404, {"error_code": 40401, "message": "Word not found."})
    wrong = echo.ask("DELETE", "/echo")
    assert (wrong.status, wrong.json()["error_code"], wrong.headers["allow"]) == (405, 405, "OPTIONS,POST")


def test_a_bug_is_told_in_the_log_and_not_to_the_client(echo: WebProcess) -> None:
    answer = echo.ask("GET", "/bug", headers={"X-Request-Id": "mine-1"})
    assert (answer.status, answer.json()) == (500, {"error_code": 500, "message": "Internal Server Error"})
    assert answer.headers["x-request-id"] == "mine-1"
    assert "ZeroDivisionError: secret" in echo.log


def test_each_answer_has_an_id_and_the_headers_of_confluents_services(echo: WebProcess) -> None:
    headers = echo.ask("GET", "/echo/x", headers={"X-Request-Id": "not an id"}).headers
    assert re.fullmatch(r"[0-9a-f]{8}-\d+", headers["x-request-id"])
    assert headers["x-xss-protection"] == "1; mode=block"
    assert headers["cache-control"] == "no-cache, no-store, must-revalidate"
    assert "server" not in headers


def test_content_types_are_negotiated(echo: WebProcess) -> None:
    assert echo.ask("POST", "/echo", {"a": 1}).json() == {"a": 1}
    assert echo.ask("POST", "/echo", b"{", {"Content-Type": "application/json"}).status == 400
    assert echo.ask("POST", "/echo", b"a: 1", {"Content-Type": "text/yaml"}).json()["error_code"] == 415
    assert echo.ask("GET", "/echo/x", headers={"Accept": "text/html"}).json()["error_code"] == 406
    assert echo.ask("GET", "/echo/x", headers={"Accept": "text/html, */*;q=0.1"}).status == 200


def test_bodies_headers_and_times_are_bounded(echo: WebProcess) -> None:
    assert echo.ask("POST", "/echo", b"[" + b" " * 2000 + b"]").json()["error_code"] == 413
    chunked = (
        b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + b"400\r\n" + b" " * 1024
    )
    assert b" 413 " in echo.raw(chunked + b"\r\n400\r\n" + b" " * 1024)
    assert echo.ask("GET", "/wait?seconds=30").json()["error_code"] == 408
    assert b" 431 " in echo.raw(b"GET /echo/x HTTP/1.1\r\nx: " + b"y" * 5000 + b"\r\n\r\n")
    assert echo.raw(b"GET /echo/x HTTP/1.1\r\nx: ") == b""  # it hangs up on who never ends
    assert b" 400 " in echo.raw(b"nonsense\r\n\r\n")


def test_a_slow_request_holds_up_no_other(echo: WebProcess) -> None:
    slow = threading.Thread(target=lambda: echo.ask("GET", "/wait?seconds=0.4"))
    slow.start()
    assert echo.ask("GET", "/echo/x").status == 200
    slow.join(TIMEOUT_S)


def test_an_answer_can_be_streamed(echo: WebProcess) -> None:
    assert echo.ask("GET", "/stream").body == b"0\n1\n2\n"


def test_health_metrics_and_description_are_served(echo: WebProcess) -> None:
    assert echo.ask("GET", "/health").json() == {"status": "UP"}
    echo.ask("GET", "/echo/x")
    metrics = echo.ask("GET", "/metrics").body.decode()
    assert 'penstock_echo_http_requests_total{method="GET",path="/echo/{word}",status="200"}' in metrics
    described = echo.ask("GET", "/openapi.json").json()
    assert described["paths"]["/echo/{word}"]["get"]["parameters"][1]["name"] == "times"
    assert b"The word again." in echo.ask("GET", "/docs").body


def test_requests_are_in_the_access_log(echo: WebProcess) -> None:
    echo.ask("GET", "/echo/logged?times=2", headers={"X-Request-Id": "log-me"})
    deadline = time.monotonic() + TIMEOUT_S
    while "log-me" not in echo.log and time.monotonic() < deadline:
        time.sleep(0.05)
    assert re.search(
        r'127\.0\.0\.1 ANONYMOUS "GET /echo/logged\?times=2 HTTP/1\.1" 200 \d+ [\d.]+ms log-me', echo.log
    )


def test_a_request_that_is_being_served_ends_before_the_service(tmp_path: Path) -> None:
    service = echo_service(tmp_path, {})
    with socket.create_connection(("127.0.0.1", service.port), timeout=TIMEOUT_S) as waiting:
        waiting.sendall(b"GET /wait?seconds=1 HTTP/1.1\r\nhost: x\r\n\r\n")
        deadline = time.monotonic() + TIMEOUT_S
        while b"_in_flight 2.0" not in service.ask("GET", "/metrics").body and time.monotonic() < deadline:
            time.sleep(0.02)
        assert service.close() == 0
        assert b'{"waited":true}' in waiting.recv(65536)
    assert (
        service.log.index("begun")
        < service.log.index("listening on http://127.0.0.1:")
        < service.log.index("ended")
    )


def test_users_log_in_by_password(tmp_path: Path) -> None:
    users = tmp_path / "users"
    secret = hashed("sesame:open", salt=b"salt", iterations=1000)
    users.write_text(f"# who\nalice: {secret},admin\nbob: plain,guest\n")
    service = echo_service(
        tmp_path / "echo",
        {
            "authentication.method": "BASIC",
            "authentication.roles": "admin",
            "penstock.authentication.users.file": str(users),
        },
    )
    try:
        refused = service.ask("GET", "/echo/x")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Basic realm="penstock"')
        for _ in range(2):
            assert service.ask("GET", "/echo/x", login="alice:sesame:open").json()["by"] == "User:alice"
        for login in ("alice:wrong", "bob:plain", "carol:x", ""):
            assert service.ask("GET", "/echo/x", login=login).status == 401
        assert service.ask("GET", "/health").status == 200
        assert "sesame" not in service.log
    finally:
        service.close()


def test_who_may_only_look_changes_nothing(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("viewer: word,viewer\nboth: word,viewer,admin\nplain: word\n")
    service = echo_service(
        tmp_path / "echo",
        {
            "authentication.method": "BASIC",
            "penstock.authentication.read.only.roles": "viewer,guest",
            "penstock.authentication.users.file": str(users),
        },
    )
    try:
        for login in ("viewer:word", "both:word", "plain:word"):
            assert service.ask("GET", "/echo/x", login=login).status == 200
        for _ in range(2):  # the second time the login is remembered
            refused = service.ask("POST", "/echo", b"{}", login="viewer:word")
            assert refused.status == 403
            assert b"viewer may look, and change nothing" in refused.body
        for login in ("both:word", "plain:word"):
            assert service.ask("POST", "/echo", b"{}", login=login).status != 403
    finally:
        service.close()
