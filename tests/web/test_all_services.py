"""What each HTTP service does as all others do: a row in `services.SERVICES` is asked all of it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.web.services import SERVICES, Service, WebProcess

LIMITS = {"penstock.request.max.bytes": "1000", "max.request.header.size": "4000", "idle.timeout.ms": "60000"}


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


def test_what_is_not_there_has_a_code_and_a_message(running: WebProcess) -> None:
    missing = running.ask("GET", "/nowhere/at/all")
    assert (missing.status, missing.json()) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert running.ask("PATCH", "/health").json()["error_code"] == 405


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

    assert code(b"{") == 400
    assert code(b"a: 1", "text/yaml") == 415
    assert code(b"[" + b" " * 2000 + b"]") == 413
    assert running.ask("GET", service.get, headers={"Accept": "text/html"}).json()["error_code"] == 406
    assert b" 431 " in running.raw(b"GET / HTTP/1.1\r\nx: " + b"y" * 5000 + b"\r\n\r\n")


def test_health_numbers_and_description_are_there(service: Service, running: WebProcess) -> None:
    assert running.ask("GET", "/health").json() == {"status": "UP"}
    running.ask("GET", service.get)
    assert f"penstock_{service.name}_http_requests_total" in running.ask("GET", "/metrics").body.decode()
    described = running.ask("GET", "/openapi.json").json()
    assert re.match(r"3\.", described["openapi"])
    assert not any(path.startswith("/contexts/{context}/") for path in described["paths"])
    assert b"<table>" in running.ask("GET", "/docs").body


def test_logins_are_asked_of_everybody(service: Service, broker: PenstockBroker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ana: secret,user\n")
    options = {
        "authentication.method": "BASIC",
        "penstock.authentication.users.file": str(tmp_path / "users"),
    }
    guarded = service.start(tmp_path / f"guarded-{service.name}", options, broker.bootstrap)
    try:
        refused = guarded.ask("GET", service.get)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Basic realm="penstock"')
        assert guarded.ask("GET", service.get, login="ana:wrong").status == 401
        assert guarded.ask("GET", service.get, login="ana:secret").status == 200
        assert guarded.ask("GET", "/health").status == 200
        assert guarded.ask("GET", "/metrics").status == 401
    finally:
        assert guarded.close() == 0
