"""What a role cannot do, it can do by no way: not by a page, a route, a forged message, or another site."""

from __future__ import annotations

import base64
import json
import re
import socket
from pathlib import Path

import pytest
from playwright.sync_api import Page, Response, WebSocket, expect

from penstock.client.clients import Connection
from penstock.console.pages.screens import screens
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.driver import wait_until
from tests.console.conftest import StartConsole
from tests.console.console_process import ConsoleProcess, Pages, settle
from tests.console.test_login import hash_of, log_in, session_of

CARD = "4929-1234-5678-9012"
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
CHANGING = re.compile(
    "create|delete|remove|drop|edit|save|add-|reset|produce|register|restart|pause|resume|stop|elect|drain|replay|"
    "clone|empty|copy-to|terminate|run-sql|set-|apply"
)
HARMLESS = re.compile("stop-search|stop-tail|add-filter|reset-filter|edit-filter")


@pytest.fixture(scope="module")
def topic(broker: PenstockBroker) -> str:
    create_topic(broker.bootstrap, "roles-orders", partitions=1)
    create_topic(broker.bootstrap, "roles-payments", partitions=1)
    return "roles-orders"


@pytest.fixture(scope="module")
def guarded(
    start_console: StartConsole, broker: PenstockBroker, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    file = tmp_path_factory.mktemp("settings") / "console.yaml"
    people = {"root": "admin", "vera": "viewer", "olga": "orders-team"}
    nowhere = "http://127.0.0.1:9"
    file.write_text(
        json.dumps(
            {
                "clusters": [
                    {
                        "name": "local", "bootstrap": broker.bootstrap, "registry": nowhere, "connect": [nowhere],
                        "sql": nowhere,
                    },
                    {"name": "hidden", "bootstrap": broker.bootstrap},
                ],
                "login": {
                    "method": "users",
                    "users": [
                        {"name": name, "password": hash_of(name), "roles": [role]}
                        for name, role in people.items()
                    ],
                },
                "roles": [
                    {
                        "name": "orders-team",
                        "grants": [
                            {
                                "actions": ["view", "read-messages", "edit-topics"],
                                "names": ["roles-orders*"],
                                "clusters": ["local"],
                            }
                        ],
                    }
                ],
                "masking": [{"topics": ["roles-cards"], "fields": ["card.number"], "except_roles": ["admin"]}],
                "audit": {"topic": "_console_audit", "cluster": "local"},
            }
        )
    )  # fmt: skip
    return start_console("--config", str(file), login=True)


def addresses(cluster: str = "local") -> list[str]:
    """One of each screen."""
    found = []
    for screen in screens():
        path = screen.path.replace("{cluster}", cluster)
        found.append(re.sub(r"\{[^}]*\}", "roles-orders", path))
    return found


def handshake(console: ConsoleProcess, path: str, headers: dict[str, str]) -> int:
    """The status that answers the beginning of a websocket."""
    lines = [
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{console.port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(b'0' * 16).decode()}",
        *[f"{name}: {value}" for name, value in headers.items()],
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", console.port), timeout=30) as plain:
        plain.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(plain.recv(65536).split()[1])


def test_strangers_get_none_of_the_screens(guarded: ConsoleProcess) -> None:
    for path in addresses():
        assert guarded.ask("GET", path).status == 401, path
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert guarded.ask(method, path, b"").status == 403, (method, path)


def test_strangers_make_the_console_keep_nothing(guarded: ConsoleProcess) -> None:
    """A page that says that nothing is there is a page, too, which would be kept for a while."""
    for path in (
        "/_console/none",
        "/_nicegui/none",
        "/_nicegui/3.0/static/x",
        "/local/none",
        "/none",
        "/_nicegui_ws/none",
    ):
        assert guarded.ask("GET", path).status in (401, 404), path
        assert b"<html" not in guarded.ask("GET", path).body, path
    version = re.findall(
        rb"/_nicegui/([^/]+)/", guarded.ask("GET", "/local", headers=_as(guarded, "vera")).body
    )[0].decode()
    for kind in ("static", "libraries", "components", "resources/x", "esm/x"):
        reply = guarded.ask("GET", f"/_nicegui/{version}/{kind}/none")
        assert (reply.status, b"<html" in reply.body) == (404, False), kind


def _as(console: ConsoleProcess, name: str) -> dict[str, str]:
    return {"Cookie": session_of(console, name, name)}


def test_no_screen_takes_anything_but_get(guarded: ConsoleProcess) -> None:
    headers = {"Cookie": session_of(guarded, "vera", "vera"), "Origin": guarded.url}
    for path in addresses():
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert guarded.ask(method, path, b"{}", headers).status in (404, 405), (method, path)


def test_a_viewer_sees_each_screen_and_no_way_to_change_anything(
    guarded: ConsoleProcess, pages: Pages
) -> None:
    page = pages.open()
    log_in(page, guarded, "vera", "vera")
    expect(page.get_by_test_id("page")).to_be_visible()
    for path in addresses():
        page.goto(guarded.url + path)
        settle(page)
        shown = page.locator("button[data-testid]:visible:enabled").evaluate_all(
            "found => found.map(one => one.dataset.testid)"
        )
        changing = [one for one in shown if CHANGING.search(one) and not HARMLESS.search(one)]
        assert changing == [], path
    pages.forget_errors("404")


def test_names_beyond_a_role_are_not_shown(guarded: ConsoleProcess, topic: str, pages: Pages) -> None:
    cookie = session_of(guarded, "olga", "olga")
    headers = {"Cookie": cookie, "Accept": "text/html"}
    assert guarded.ask("GET", "/local/topics/roles-orders", headers=headers).status == 200
    assert guarded.ask("GET", "/local/topics/roles-payments", headers=headers).status == 403
    for rest in ("", "/export", "/part"):
        path = f"/local/topics/roles-payments/messages{rest}"
        assert guarded.ask("GET", path, headers=headers).status in (400, 403), path
    for path in addresses("hidden"):
        assert guarded.ask("GET", path, headers=headers).status in (403, 404), path
    page = pages.open()
    log_in(page, guarded, "olga", "olga")
    page.goto(f"{guarded.url}/local/topics")
    expect(page.get_by_text("roles-orders").first).to_be_visible()
    expect(page.get_by_text("roles-payments")).to_have_count(0)
    assert "hidden" not in page.locator("header").inner_text()


def test_the_records_of_the_audit_log_are_not_read_around_its_page(guarded: ConsoleProcess) -> None:
    cookie = session_of(guarded, "vera", "vera")
    path = "/local/topics/_console_audit/messages"
    for rest in ("/export", "/part?partition=0&offset=0"):
        assert guarded.ask("GET", path + rest, headers={"Cookie": cookie}).status == 403, rest
    admin = {"Cookie": session_of(guarded, "root", "root")}
    wait_until(
        lambda: b"log in from" in guarded.ask("GET", f"{path}/export", headers=admin).body,
        "an entry in the topic",
    )


def test_a_masked_field_never_reaches_the_browser_of_who_may_not_see_it(
    guarded: ConsoleProcess, broker: PenstockBroker, pages: Pages
) -> None:
    create_topic(broker.bootstrap, "roles-cards", partitions=1)
    producer = Connection(broker.bootstrap).producer({})
    producer.produce("roles-cards", key="k", value=json.dumps({"id": 1, "card": {"number": CARD}}))
    assert producer.flush(30) == 0
    heard: dict[str, str] = {"vera": "", "root": ""}
    for name in heard:
        page = pages.open()
        listen(page, heard, name)
        log_in(page, guarded, name, name)
        expect(page.get_by_test_id("page")).to_be_visible()
        page.goto(f"{guarded.url}/local/topics/roles-cards/messages")
        expect(page.get_by_text(re.compile('"id": ?1')).first).to_be_visible()
    assert CARD in heard["root"]
    assert CARD not in heard["vera"]
    assert "id" in heard["vera"]


def listen(page: Page, heard: dict[str, str], name: str) -> None:
    """To all that the browser gets: answers and messages of websockets."""

    def add(data: str | bytes) -> None:
        heard[name] += data if isinstance(data, str) else data.decode("utf-8", "replace")

    def replied(reply: Response) -> None:
        if reply.status == 200 and "/_nicegui/" not in reply.url:
            add(reply.body())

    def connected(socket: WebSocket) -> None:
        socket.on("framereceived", add)

    page.on("response", replied)
    page.on("websocket", connected)


def test_a_websocket_from_another_site_is_refused(guarded: ConsoleProcess) -> None:
    cookie = session_of(guarded, "root", "root")
    assert handshake(guarded, SOCKET, {"Cookie": cookie, "Origin": guarded.url}) == 101
    for origin in (
        "https://evil.example",
        "null",
        f"http://localhost:{guarded.port}",
        f"https://127.0.0.1:{guarded.port}",
    ):
        assert handshake(guarded, SOCKET, {"Cookie": cookie, "Origin": origin}) == 403, origin
    assert handshake(guarded, SOCKET, {"Cookie": cookie}) == 403
    assert handshake(guarded, SOCKET, {"Origin": guarded.url}) == 401
    assert handshake(guarded, "/local", {"Cookie": cookie, "Origin": guarded.url}) == 403


def test_there_is_no_other_way_than_the_websocket(guarded: ConsoleProcess) -> None:
    """Long polling would be a second door with locks of its own."""
    headers = {"Cookie": session_of(guarded, "root", "root"), "Origin": guarded.url}
    path = SOCKET.replace("websocket", "polling")
    assert guarded.ask("GET", path, headers=headers).status == 404
    assert guarded.ask("POST", path, b"40", headers).status == 404


def test_a_page_speaks_for_itself_only(guarded: ConsoleProcess, pages: Pages) -> None:
    """Whoever learns the id of another's page, and of what is in it, presses none of its buttons."""
    admin, viewer = pages.open(), pages.open()
    for page, name in ((admin, "root"), (viewer, "vera")):
        log_in(page, guarded, name, name)
        expect(page.get_by_test_id("page")).to_be_visible()
        page.wait_for_function("window.did_handshake === true")
    forged = _help_event(admin)
    send = "message => window.socket.emit('event', message)"
    viewer.evaluate(send, forged)
    viewer.evaluate(
        "message => window.socket.emit('handshake', message)", {**forged, "tab_id": "x", "document_id": "y"}
    )
    viewer.evaluate(send, forged)
    viewer.evaluate(
        "message => window.socket.emit('javascript_response', message)", {**forged, "request_id": "x"}
    )
    # The viewer's own page answers, so all that came before was looked at.
    viewer.get_by_test_id("help-button").click()
    expect(viewer.get_by_test_id("help")).to_be_visible()
    expect(admin.get_by_test_id("help")).to_have_count(0)
    admin.evaluate(send, forged)
    expect(admin.get_by_test_id("help")).to_be_visible()


def test_a_browser_writes_no_lines_of_its_own_into_the_log(guarded: ConsoleProcess, pages: Pages) -> None:
    page = pages.open()
    log_in(page, guarded, "vera", "vera")
    expect(page.get_by_test_id("page")).to_be_visible()
    page.wait_for_function("window.did_handshake === true")
    page.evaluate(
        """() => window.socket.emit(
            'log', {client_id: window.clientId, level: 'error', message: 'x\\n[2026-01-31] INFO forged by vera'}
        )"""
    )
    page.get_by_test_id("help-button").click()  # which comes after it
    expect(page.get_by_test_id("help")).to_be_visible()
    assert "forged by vera" not in guarded.log


def _help_event(page: Page) -> dict[str, object]:
    """What the page itself sends when its help is asked for."""
    page.evaluate(
        """() => {
            window.heard = [];
            const emit = window.socket.emit.bind(window.socket);
            window.socket.emit = (name, message) => name === 'event' ? window.heard.push(message) : emit(name, message);
            consoleHelp();
            window.socket.emit = emit;
        }"""
    )
    page.wait_for_function("window.heard.length > 0")
    found: dict[str, object] = page.evaluate("window.heard[0]")
    return found


def test_answers_cannot_be_put_into_frames_or_read_by_other_sites(guarded: ConsoleProcess) -> None:
    headers = {"Cookie": session_of(guarded, "vera", "vera")}
    for path in ("/local", "/login", "/_console/none", "/local/nothing/here"):
        said = guarded.ask("GET", path, headers=headers).headers
        assert said["x-frame-options"] == "DENY", path
        assert said["x-content-type-options"] == "nosniff", path
        policy = said["content-security-policy"]
        assert "frame-ancestors 'none'" in policy, path
        assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0], path
        assert "access-control-allow-origin" not in said


def test_a_forwarded_prefix_is_not_believed(guarded: ConsoleProcess) -> None:
    headers = {"Cookie": session_of(guarded, "vera", "vera"), "X-Forwarded-Prefix": "//evil.example"}
    assert b"evil.example" not in guarded.ask("GET", "/local", headers=headers).body


def test_the_audit_log_is_in_its_topic_and_on_a_page_for_admins(
    guarded: ConsoleProcess, pages: Pages
) -> None:
    page = pages.open()
    log_in(page, guarded, "vera", "vera")
    expect(page.get_by_test_id("page")).to_be_visible()
    expect(page.get_by_test_id("menu-audit")).to_have_count(0)
    page.goto(f"{guarded.url}/local/audit")
    expect(page.locator(".console-complaint")).to_be_visible()

    admin = pages.open()
    log_in(admin, guarded, "root", "root")
    admin.get_by_test_id("menu-audit").click()
    table = admin.get_by_test_id("audit")
    expect(table.get_by_text("log in from 127.0.0.1").first).to_be_visible()
    admin.get_by_test_id("search").fill("vera")
    expect(table.locator("tbody tr").first).to_contain_text("vera")
    expect(table.get_by_text("root", exact=True)).to_have_count(0)


def test_the_passwords_of_the_settings_are_in_no_page_and_no_log(guarded: ConsoleProcess) -> None:
    headers = {"Cookie": session_of(guarded, "root", "root")}
    pages_of_all = b"".join(guarded.ask("GET", path, headers=headers).body for path in addresses())
    assert b"PBKDF2" not in pages_of_all
    assert "PBKDF2" not in guarded.log


def test_settings_that_a_browser_remembers_are_taken_from_a_list(
    guarded: ConsoleProcess, tmp_path: Path
) -> None:
    cookie = session_of(guarded, "vera", "vera")
    strange = f'{cookie}; penstock_language=../../etc; penstock_theme="><script>'
    body = guarded.ask("GET", "/local", headers={"Cookie": strange}).body
    assert b"../../etc" not in body
    assert b'"><script>' not in body
