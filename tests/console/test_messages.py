"""The page of messages, in a real browser on a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Locator, Page, expect

from penstock.console.messages.loading import load
from penstock.console.messages.model import Source
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.conftest import MakeTopic
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.test_login import hash_of, log_in, session_of

WAIT_S = 30.0
BASE_MS = 1_700_000_000_000
EVIL = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"


def write(broker: PenstockBroker, topic: str, *records: dict[str, Any]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "message.max.bytes": 20_000_000,
            "linger.ms": 20,
        }
    )
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(WAIT_S) == 0


@pytest.fixture
def orders(broker: PenstockBroker, make_topic: MakeTopic) -> str:
    """30 records in two partitions."""
    topic = make_topic(partitions=2)
    write(
        broker, topic,
        *({"key": f"customer-{n}", "value": json.dumps({"id": n, "total": n * 10, "state": "paid" if n % 2 else "open"}),
           "headers": [("source", "shop")], "partition": n % 2, "timestamp": BASE_MS + n * 1000} for n in range(30)),
    )  # fmt: skip
    return topic


def address(console: ConsoleProcess, topic: str, query: str = "") -> str:
    return f"{console.url}/local/topics/{topic}/messages{query}"


def rows(page: Page) -> Locator:
    return page.locator("[data-testid^=message-]")


def search(page: Page, text: str) -> None:
    page.get_by_test_id("text").fill(text)
    page.get_by_test_id("search").click()


def choose(page: Page, field: str, option: str) -> None:
    page.get_by_test_id(field).click()
    page.get_by_role("option", name=option, exact=True).click()


def test_the_newest_messages_are_there_and_open_by_mouse_and_keyboard(
    console: ConsoleProcess, page: Page, orders: str
) -> None:
    page.goto(address(console, orders))
    expect(rows(page)).to_have_count(30)
    expect(rows(page).first).to_contain_text("customer-29")
    expect(page.get_by_test_id("status")).to_contain_text("30 shown of 30 records")
    rows(page).first.click()
    expect(page.get_by_test_id("text-value")).to_contain_text('"total": 290')
    expect(page.get_by_test_id("detail-1-14")).to_contain_text("source")
    rows(page).first.click()
    expect(page.get_by_test_id("text-value")).to_have_count(0)
    rows(page).nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("detail-0-14")).to_contain_text("customer-28")
    page.get_by_test_id("copy-value").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.includes('280'))")


def test_a_search_by_text_pattern_and_json_has_an_address_of_its_own(
    console: ConsoleProcess, page: Page, orders: str
) -> None:
    page.goto(address(console, orders))
    expect(rows(page)).to_have_count(30)
    search(page, '"id": 7,')
    expect(rows(page)).to_have_count(1)
    choose(page, "kind", "JSON condition")
    search(page, '$.total >= 100 and $.state == "paid"')
    expect(rows(page)).to_have_count(10)
    expect(page.get_by_test_id("status")).to_contain_text("10 found in 30 records")
    page.reload()
    expect(rows(page)).to_have_count(10)
    expect(page.get_by_test_id("text")).to_have_value('$.total >= 100 and $.state == "paid"')
    choose(page, "kind", "Regular expression")
    search(page, "customer-1\\d$")
    expect(rows(page)).to_have_count(10)
    page.get_by_test_id("text").fill("(?=x)")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("problem")).to_contain_text("looking ahead, which can take forever")
    search(page, "customer-2$")
    expect(page.get_by_test_id("problem")).to_be_hidden()
    expect(rows(page)).to_have_count(1)


def test_messages_from_an_offset_of_one_partition_by_key_and_header(
    console: ConsoleProcess, page: Page, orders: str
) -> None:
    page.goto(address(console, orders, "?mode=offset&start=5&partitions=1&limit=50"))
    expect(rows(page)).to_have_count(10)
    expect(rows(page).first).to_contain_text("customer-11")
    page.get_by_test_id("key").fill("customer-1*")
    page.get_by_test_id("header").fill("source=shop")
    page.get_by_test_id("search").click()
    expect(rows(page)).to_have_count(5)


def test_what_is_in_a_message_is_text_and_never_runs(
    console: ConsoleProcess, page: Page, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(
        broker, topic, {"key": EVIL, "value": EVIL, "headers": [(EVIL, EVIL.encode())]},
        {"key": b"\xff\xfe", "value": b"caf\xe9 and " + EVIL.encode()}, {"key": "{{ 7*7 }}", "value": '{"a": "{{ 7*7 }}"}'},
    )  # fmt: skip
    page.goto(address(console, topic))
    expect(rows(page)).to_have_count(3)
    for number in range(3):
        page.get_by_test_id(f"message-0-{number}").click()
        expect(page.get_by_test_id(f"detail-0-{number}").get_by_test_id("text-value")).to_be_visible()
    expect(page.get_by_test_id("detail-0-0").get_by_test_id("text-value")).to_have_text(EVIL)
    expect(page.get_by_test_id("detail-0-2").get_by_test_id("text-key")).to_have_text("{{ 7*7 }}")
    assert "owned" not in page.title()
    assert page.locator("img[src=x]").count() == 0


def test_a_value_of_ten_megabytes_is_cut_and_can_be_downloaded(
    console: ConsoleProcess, page: Page, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"max.message.bytes": "20000000"})
    large = json.dumps({"pad": "x" * 10_000_000}).encode()
    wide = json.dumps({f"column_{n}": n for n in range(10_000)})
    write(broker, topic, {"value": large}, {"value": wide})
    page.goto(address(console, topic))
    expect(rows(page)).to_have_count(2)
    page.get_by_test_id("message-0-0").click()
    detail = page.get_by_test_id("detail-0-0")
    expect(detail).to_contain_text("Cut here")
    with page.expect_download() as started:
        detail.get_by_test_id("download-value").click()
    assert started.value.path().read_bytes() == large
    page.get_by_test_id("message-0-1").click()
    expect(page.get_by_test_id("detail-0-1").get_by_test_id("text-value")).to_contain_text(
        '"column_999": 999'
    )


def test_live_messages_come_in_and_pause(
    console: ConsoleProcess, page: Page, broker: PenstockBroker, orders: str
) -> None:
    page.goto(address(console, orders))
    expect(rows(page)).to_have_count(30)
    choose(page, "mode", "Live")
    page.get_by_test_id("search").click()
    expect(page.get_by_test_id("status")).to_contain_text("Following")
    expect(rows(page)).to_have_count(0)
    deadline_s = time.monotonic() + WAIT_S
    while not rows(page).count():  # what was written before the tail stood is not followed
        write(broker, orders, {"key": "new", "value": "hello"})
        page.wait_for_timeout(300)
        assert time.monotonic() < deadline_s
    page.get_by_test_id("hold-tail").click()
    expect(page.get_by_test_id("status")).to_contain_text("Paused")
    write(broker, orders, {"key": "newer", "value": "while paused"})
    page.get_by_test_id("hold-tail").click()
    expect(rows(page).first).to_contain_text("while paused")
    page.get_by_test_id("stop-search").click()
    expect(page.get_by_test_id("stop-search")).to_be_hidden()


def test_one_message_is_written_by_a_form_and_several_by_lines(
    console: ConsoleProcess, page: Page, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    page.goto(address(console, topic))
    expect(page.get_by_test_id("status")).to_contain_text("0 shown")
    page.get_by_test_id("produce-button").click()
    page.get_by_test_id("produce-key").fill("k")
    page.get_by_test_id("produce-value").fill('{"total": ')
    page.get_by_test_id("headers").fill("source=page\nflag")
    page.get_by_test_id("produce-partition").fill("1")
    page.get_by_test_id("write").click()
    expect(page.locator(".q-notification")).to_contain_text("the value: Expecting value")
    page.get_by_test_id("produce-value").fill('{"total": 3}')
    page.get_by_test_id("write").click()
    expect(page.get_by_text("Written to partition 1, offset 0.")).to_be_visible()
    page.get_by_test_id("several").click()
    page.get_by_test_id("lines").fill(
        '{"key": "a", "value": {"n": 1}}\n{"key": "b", "value": null, "partition": 0}'
    )
    page.get_by_test_id("write").click()
    expect(page.get_by_text("2 messages written.")).to_be_visible()
    expect(rows(page)).to_have_count(3)
    record = load(Source(bootstrap=broker.bootstrap), topic, 1, 0).record
    assert (record.key, record.value, record.headers) == (
        b"k",
        b'{"total": 3}',
        (("source", b"page"), ("flag", None)),
    )


def test_chosen_messages_and_all_that_a_search_finds_are_copied(
    console: ConsoleProcess, page: Page, orders: str, make_topic: MakeTopic
) -> None:
    target = make_topic()
    page.goto(address(console, orders, "?kind=json&text=%24.total%20%3E%20200"))
    expect(rows(page)).to_have_count(9)
    for number in range(2):
        rows(page).nth(number).get_by_role("checkbox").click()
    page.get_by_test_id("copy-button").click()
    page.get_by_test_id("copy-target").fill(target)
    page.get_by_test_id("copy-start").click()
    expect(page.get_by_test_id("copy-status")).to_have_text(f"2 messages copied to {target}.")
    page.get_by_text("All that the search finds").click()
    page.get_by_test_id("copy-start").click()
    expect(page.get_by_test_id("copy-status")).to_have_text(f"9 messages copied to {target}.")
    page.get_by_test_id("copy-target").fill("nowhere-at-all")
    page.get_by_test_id("copy-start").click()
    expect(page.locator(".q-notification").filter(has_text="nowhere-at-all")).to_be_visible()
    page.goto(address(console, target))
    expect(rows(page)).to_have_count(11)


def test_an_export_is_a_file_of_what_the_search_finds(
    console: ConsoleProcess, page: Page, orders: str
) -> None:
    page.goto(address(console, orders, "?kind=json&text=%24.total%20%3E%20200"))
    expect(rows(page)).to_have_count(9)
    page.get_by_test_id("export-button").click()
    page.get_by_test_id("export-documents").click()
    with page.expect_download() as started:
        page.get_by_test_id("export-take").click()
    assert started.value.suggested_filename == f"{orders}.jsonl"
    lines = [json.loads(line) for line in started.value.path().read_text().splitlines()]
    assert sorted(line["value"]["id"] for line in lines) == list(range(21, 30))


def test_the_menu_leads_to_a_choice_of_topics(console: ConsoleProcess, page: Page, orders: str) -> None:
    page.goto(f"{console.url}/local/messages")
    page.get_by_test_id("search").fill(orders)
    page.get_by_test_id("topics").get_by_text(orders).click()
    expect(page).to_have_url(address(console, orders))


def test_a_phone_shows_messages_without_a_page_that_is_too_wide(
    console: ConsoleProcess, pages: Pages, orders: str
) -> None:
    page = pages.open(address(console, orders), viewport=PHONE, locale="pt-PT")
    expect(page.get_by_test_id("status")).to_contain_text("30 mostrados de 30")
    rows(page).first.click()
    expect(page.get_by_test_id("text-value")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_test_id("produce-button").click()
    expect(page.get_by_test_id("write")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.fixture(scope="module")
def guarded(
    start_console: StartConsole, broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    """`ana` sees topics that begin with `seen`, and no numbers of cards; `rui` may write and sees everything."""
    file = tmp_path_factory.mktemp("settings") / "console.yaml"
    users = [
        {"name": "ana", "password": hash_of("ana"), "roles": ["reader"]},
        {"name": "rui", "password": hash_of("rui"), "roles": ["writer"]},
    ]
    reader = {"actions": ["view", "read-messages", "produce"], "names": ["seen-*"]}
    writer = {"actions": ["view", "read-messages", "produce"]}
    document = {
        "clusters": [{"name": "local", "bootstrap": broker.bootstrap}],
        "login": {"method": "users", "users": users},
        "roles": [{"name": "reader", "grants": [reader]}, {"name": "writer", "grants": [writer]}],
        "masking": [{"topics": ["seen-*"], "fields": ["card"], "except_roles": ["writer"]}],
    }
    file.write_text(json.dumps(document))
    return start_console("--config", str(file), login=True)


def test_who_may_not_see_a_field_finds_it_by_no_way(
    guarded: ConsoleProcess, pages: Pages, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic, secret = f"seen-{make_topic()}", make_topic()
    create_topic(broker.bootstrap, topic)
    write(broker, topic, {"key": "k", "value": '{"card": "4929-ZQXJ-7777", "name": "Ana"}'})
    write(broker, secret, {"key": "k", "value": "secret"})
    page = pages.open()
    log_in(page, guarded, "ana", "ana")
    page.goto(address(guarded, topic))
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("••••")
    rows(page).first.click()
    expect(page.get_by_test_id("text-value")).to_contain_text('"name": "Ana"')
    assert "ZQXJ" not in page.content()
    expect(page.get_by_test_id("copy-button")).to_have_count(0)
    search(page, "ZQXJ")
    expect(page.get_by_test_id("status")).to_contain_text("0 found in 1 records")
    headers = {"Cookie": session_of(guarded, "ana", "ana")}
    base = f"/local/topics/{topic}/messages"
    for path in (f"{base}/part?partition=0&offset=0&part=value", f"{base}/export?form=csv", f"{base}/export"):
        reply = guarded.ask("GET", path, headers=headers)
        assert reply.status == 200
        assert b"ZQXJ" not in reply.body
        assert "••••".encode() in reply.body
    for path in ("", "/part?partition=0&offset=0&part=value", "/export"):
        found = guarded.ask(
            "GET", f"/local/topics/{secret}/messages{path}", headers={**headers, "Accept": "text/html"}
        )
        assert found.status == 403
        assert b"secret" not in found.body
    assert guarded.ask("GET", f"{base}/export").status == 401
    seen = guarded.ask("GET", f"{base}/export", headers={"Cookie": session_of(guarded, "rui", "rui")})
    assert b"ZQXJ" in seen.body


def test_a_wrong_download_is_refused_with_a_line(
    guarded: ConsoleProcess, broker: PenstockBroker, orders: str
) -> None:
    headers = {"Cookie": session_of(guarded, "rui", "rui")}
    base = f"/local/topics/{orders}/messages"
    for path, status, said in (
        ("/part?partition=0&offset=99", 400, "it ends at 15"),
        ("/part?partition=9&offset=0", 400, "has no partition 9"),
        ("/part?partition=x&offset=0", 400, "numbers"),
        ("/part?partition=0&offset=0&part=all", 400, "there is no part"),
        ("/export?form=xml", 400, "no form of an export"),
        ("/export?records=99999999999", 400, "can be exported at once"),
        ("/export?kind=pattern&text=%28", 400, "cannot be read"),
        ("/export?mode=time&start=yesterday", 400, "is not a time"),
    ):
        reply = guarded.ask("GET", base + path, headers=headers)
        assert (reply.status, said in reply.json()["message"]) == (status, True), (path, reply.body)
