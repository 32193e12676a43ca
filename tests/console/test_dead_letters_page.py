"""The screens of dead letters, with letters that real processors have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster
from penstock.consumer import Record
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.processors import process_all, read_all, write
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages


@pytest.fixture
def letters(broker: PenstockBroker, topic_name: str) -> str:
    """A topic whose six records all became dead letters, of two causes in turn."""
    create_topic(broker.bootstrap, topic_name, partitions=2)
    records = [
        (b"k%d" % number, json.dumps({"n": number, "card": f"4711-{number}"}).encode()) for number in range(6)
    ]
    write(broker.bootstrap, topic_name, records, partition=1, headers=[("own", b"<b>h</b>")])
    process_all(broker.bootstrap, topic_name, fail, group=f"group-of-{topic_name}", retries=0)
    return topic_name


def fail(record: Record) -> None:
    number = json.loads(record.value)["n"]
    if number % 2:
        raise TimeoutError(f"no answer for {number}")
    raise ValueError(f"nonsense {number} <img src=x onerror=alert(1)>")


def test_topics_of_dead_letters_are_found(console: ConsoleProcess, letters: str, page: Page) -> None:
    page.goto(f"{console.url}/local/dead-letters")
    row = page.get_by_test_id("dead-topics").get_by_role("row", name=f"{letters}.dlq")
    row.get_by_role("link").click()
    expect(page.get_by_test_id("count")).to_contain_text("6 letters")


def test_causes_are_counted_and_letters_shown(console: ConsoleProcess, letters: str, page: Page) -> None:
    page.goto(f"{console.url}/local/dead-letters/{letters}.dlq")
    causes = page.get_by_test_id("causes")
    timeouts = causes.get_by_role("row", name="TimeoutError")
    expect(timeouts).to_contain_text("no answer for 5")
    expect(causes.get_by_role("row", name="ValueError")).to_contain_text("<img src=x onerror=alert(1)>")
    timeouts.get_by_test_id("samples").click()
    samples = page.get_by_role("main").get_by_test_id("samples").last
    expect(samples).to_contain_text(f"{letters} 1/5")
    samples.get_by_test_id("open").first.click()
    expect(page.get_by_test_id("letter")).to_contain_text("Traceback")
    expect(page.get_by_test_id("letter")).to_contain_text("own: <b>h</b>")


def test_one_cause_is_replayed_and_the_rest_is_left(
    console: ConsoleProcess, broker: PenstockBroker, letters: str, page: Page
) -> None:
    page.goto(f"{console.url}/local/dead-letters/{letters}.dlq")
    page.get_by_test_id("replay").click()
    page.get_by_test_id("replay-cause").click()
    page.get_by_role("option", name="TimeoutError").click()
    page.get_by_test_id("replay-preview").click()
    expect(page.get_by_test_id("replay-told")).to_have_text(f"Would replay 3 to {letters}; 3 left")
    assert len(read_all(broker.bootstrap, letters)) == 6
    page.get_by_test_id("replay-start").click()
    expect(page.get_by_test_id("replay-told")).to_have_text(f"Replayed 3 to {letters}; 3 left")
    page.get_by_test_id("replay-close").click()
    expect(page.get_by_test_id("count")).to_contain_text("3 not replayed yet")
    assert len(read_all(broker.bootstrap, letters)) == 9
    page.get_by_test_id("replay").click()
    page.get_by_test_id("replay-start").click()
    expect(page.get_by_test_id("replay-told")).to_contain_text(f"Replayed 3 to {letters}; 0 left")
    with Cluster(broker.bootstrap) as cluster:
        assert all(each.is_replayed for each in cluster.dead_letters.list(f"{letters}.dlq"))


def test_a_topic_to_replay_to_must_be_there(console: ConsoleProcess, letters: str, page: Page) -> None:
    page.goto(f"{console.url}/local/dead-letters/{letters}.dlq")
    page.get_by_test_id("replay").click()
    page.get_by_test_id("replay-to").fill("nowhere")
    page.get_by_test_id("replay-preview").click()
    expect(page.get_by_role("alert").filter(has_text="there is no topic 'nowhere'")).to_be_visible()
    page.get_by_test_id("replay-limit").fill("none")
    page.get_by_test_id("replay-preview").click()
    expect(page.get_by_role("alert").filter(has_text="must be a whole number")).to_be_visible()


def test_what_is_masked_is_hidden_and_not_replayed(
    start_console: StartConsole, broker: PenstockBroker, letters: str, page: Page, tmp_path: Path
) -> None:
    settings = tmp_path / "console.yaml"
    settings.write_text(
        f"""
clusters:
  - name: local
    bootstrap: {broker.bootstrap}
masking:
  - topics: [{letters}]
    fields: [card]
"""
    )
    console = start_console("--config", str(settings))
    page.goto(f"{console.url}/local/dead-letters/{letters}.dlq")
    expect(page.get_by_test_id("causes")).to_be_visible()
    expect(page.get_by_role("main").get_by_test_id("samples").last).to_contain_text('"n"')
    assert "4711-" not in page.content()
    page.get_by_test_id("replay").click()
    page.get_by_test_id("replay-start").click()
    expect(page.get_by_role("alert").filter(has_text="are masked from you")).to_be_visible()
    assert len(read_all(broker.bootstrap, letters)) == 6


def test_a_topic_that_is_not_there_is_told(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/dead-letters")
    page.get_by_test_id("other-topic").fill("nowhere.dlq")
    page.get_by_test_id("other-topic").press("Enter")
    expect(page.get_by_test_id("banner-negative")).to_contain_text("there is no topic 'nowhere.dlq'")


def test_the_screens_fit_a_phone(console: ConsoleProcess, letters: str, pages: Pages) -> None:
    phone = pages.open(viewport=PHONE)
    for path in ("dead-letters", f"dead-letters/{letters}.dlq"):
        phone.goto(f"{console.url}/local/{path}")
        expect(phone.get_by_test_id("title")).to_be_visible()
        expect(phone.get_by_role("main").locator(".q-skeleton")).to_have_count(0)
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
