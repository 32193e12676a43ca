"""What is in a cluster is shown and never executed, and what is sent to the console breaks nothing."""

from __future__ import annotations

import base64
import socket
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from penstock.client.clients import Connection
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.console.console_process import ConsoleProcess, Pages, settle
from tests.console.test_roles import SOCKET, addresses

EVIL = '"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>{{window.pwned=1}}'
TOPIC = "bad-input"


@pytest.fixture(scope="module")
def evil_topic(broker: PenstockBroker) -> str:
    """With HTML, scripts and templates in keys, values, headers, and in the name of a group that reads it."""
    create_topic(broker.bootstrap, TOPIC, partitions=1)
    connection = Connection(broker.bootstrap)
    producer = connection.producer({})
    for value in (
        EVIL,
        '{"a": "' + EVIL.replace('"', '\\"') + '"}',
        "</script><script>window.pwned=1</script>",
    ):
        producer.produce(TOPIC, key=EVIL, value=value, headers=[(EVIL, EVIL.encode())])
    producer.produce(TOPIC, key=b"\xff\xfe\x00", value=b"\xc3\x28\x00\x01", headers=[("h", None)])
    producer.produce(TOPIC, key=None, value=None)
    assert producer.flush(30) == 0
    consumer = connection.consumer(
        {"group.id": EVIL, "auto.offset.reset": "earliest", "client.id": EVIL[:60]}
    )
    consumer.subscribe([TOPIC])
    assert len(consumer.consume(5, timeout=30)) == 5
    consumer.commit(asynchronous=False)
    consumer.close()
    return TOPIC


def is_clean(page: Page) -> bool:
    return bool(page.evaluate("window.pwned === undefined && document.querySelector('img[src=x]') === null"))


def test_html_in_records_and_names_is_text(console: ConsoleProcess, evil_topic: str, page: Page) -> None:
    group = quote(EVIL, safe="")
    for path in (
        f"/local/topics/{evil_topic}/messages", f"/local/topics/{evil_topic}", "/local/groups", f"/local/groups/{group}",
        "/local", "/local/topics", "/local/cluster",
    ):  # fmt: skip
        page.goto(console.url + path)
        settle(page)
        assert is_clean(page), path
    page.goto(f"{console.url}/local/groups")
    page.get_by_test_id("search").fill("onerror=")  # among groups of other tests
    expect(page.get_by_text("onerror=").first).to_be_visible()


@pytest.mark.parametrize("where", ["/local/topics/", "/local/groups/", "/local/", "/"])
def test_html_in_addresses_is_text(console: ConsoleProcess, where: str, pages: Pages) -> None:
    page = pages.open(f"{console.url}{where}{quote(EVIL, safe='')}?q={quote(EVIL, safe='')}")
    settle(page)
    assert is_clean(page)
    pages.forget_errors("404")


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere", "/nowhere/topics", "/local/%00", "/local/topics/%ff%fe", "/local/topics/..%2f..%2fetc", "/%2e%2e/etc",
        "/local/topics/" + "x" * 30_000, "/local/topics/a/b/c/d", "/_console/../../pyproject.toml",
        "/_nicegui/3.0/static/..%2f..%2f..%2fetc%2fpasswd", "/local/groups/%F0%9F%92%A9",
    ],
)  # fmt: skip
def test_a_strange_address_is_an_answer(console: ConsoleProcess, path: str) -> None:
    reply = console.ask("GET", path)
    assert reply.status in (200, 400, 404)
    assert b"Traceback" not in reply.body
    assert b"root:" not in reply.body


def test_a_body_that_is_too_large_is_refused(console: ConsoleProcess) -> None:
    headers = {"Origin": console.url, "Content-Type": "application/x-www-form-urlencoded"}
    assert console.ask("POST", "/login", b"name=" + b"x" * (17 << 20), headers).status in (404, 413)


def test_rubbish_in_a_websocket_ends_it_and_nothing_else(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    expect(page.get_by_test_id("page")).to_be_visible()
    for rubbish in (
        b"\xff" * 100,
        b"\x81\x05hello",
        b"\x81\xfe\xff\xff",
        b"\x82\x80aaaa",
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        _sent(console, rubbish)
    for text in (
        '42["event",null]', '42["event",{}]', '42["event",{"client_id":[1]}]', '42["handshake",1]', "42[", "9", "40{}",
        '42["event",{"client_id":"x","id":1,"listener_id":"y","args":[]}]', "451-[]", "42" + "[" * 100_000,
    ):  # fmt: skip
        _sent(console, _frame(text))
    page.get_by_test_id("help-button").click()
    expect(page.get_by_test_id("help")).to_be_visible()


def _frame(text: str) -> bytes:
    """A masked text frame; with a mask of zeros it stands there as it is."""
    data = text.encode()
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + min(size, 65535).to_bytes(2, "big")
    if size > 65535:
        length = b"\xff" + size.to_bytes(8, "big")
    return b"\x81" + length + b"\0\0\0\0" + data


def _sent(console: ConsoleProcess, data: bytes) -> None:
    """Behind the handshake of a websocket; until the console has ended it, or has answered."""
    lines = [
        f"GET {SOCKET} HTTP/1.1", f"Host: 127.0.0.1:{console.port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(b'0' * 16).decode()}",
        f"Origin: {console.url}",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", console.port), timeout=30) as plain:
        plain.sendall("\r\n".join([*lines, "", ""]).encode())
        assert b" 101 " in plain.recv(65536)
        plain.sendall(_frame("40") + data)
        plain.shutdown(socket.SHUT_WR)
        try:
            while plain.recv(65536):
                pass
        except ConnectionError:
            pass


def test_every_screen_comes_when_the_cluster_does_not_answer(start_console: object, pages: Pages) -> None:
    gone: ConsoleProcess = start_console(bootstrap="127.0.0.1:9")  # type: ignore[operator]
    page = pages.open()
    for path in addresses():
        page.goto(gone.url + path)
        expect(page.get_by_test_id("page")).to_be_visible()
    pages.forget_errors("404")


def test_two_browsers_at_once_have_pages_of_their_own(console: ConsoleProcess, pages: Pages) -> None:
    first, second = (
        pages.open(f"{console.url}/local"),
        pages.open(f"{console.url}/local/topics", locale="pt-BR"),
    )
    expect(first.get_by_test_id("menu-topics")).to_have_text("topicTopics")
    expect(second.get_by_test_id("menu-topics")).to_contain_text("Tópicos")
    first.get_by_test_id("help-button").click()
    expect(first.get_by_test_id("help")).to_be_visible()
    expect(second.get_by_test_id("help")).to_have_count(0)
