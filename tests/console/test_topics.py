"""The list of topics and the page of one, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster, ConfigResource
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.conftest import BROKER_OPTIONS
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.watching import commit, watching, write


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """With nothing on it but what is made here."""
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=BROKER_OPTIONS) as running:
        with Cluster(running.bootstrap) as cluster:
            for number in range(60):
                cluster.topics.create(f"many-{number:02}", partitions=1 + number % 2)
            cluster.topics.create("orders", partitions=3)
        write(
            running.bootstrap,
            "orders",
            {0: [b"12345"] * 40, 1: [None] * 10, 2: []},
            **{"enable.idempotence": True},
        )
        commit(running.bootstrap, "billing", "orders", 5)
        yield running


@pytest.fixture(scope="module")
def console(
    start_console: StartConsole, own_broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    return watching(start_console, tmp_path_factory.mktemp("settings"), {"local": own_broker.bootstrap})


@pytest.fixture
def cluster(own_broker: PenstockBroker) -> Iterator[Cluster]:
    with Cluster(own_broker.bootstrap) as opened:
        yield opened


def open_topics(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics")
    expect(page.get_by_test_id("row-many-00")).to_be_visible()


def test_the_list_is_searched_sorted_and_paged_by_the_server(console: ConsoleProcess, page: Page) -> None:
    open_topics(console, page)
    table = page.get_by_test_id("topics")
    expect(page.get_by_test_id("count")).to_have_text(re.compile(r"^\d\d topics$"))
    expect(table.locator("tbody tr")).to_have_count(25)
    table.get_by_role("button", name="Next page").click()
    expect(page.get_by_test_id("row-many-25")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("ANY-4 many")
    expect(table.locator("tbody tr")).to_have_count(10)
    expect(page.get_by_test_id("count")).to_have_text("10 topics")
    table.get_by_role("columnheader", name="Partitions").click()
    table.get_by_role("columnheader", name="Partitions").click()
    expect(table.locator("tbody tr").first).to_contain_text("many-41")


def test_a_topic_is_made_with_the_keyboard_alone(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    open_topics(console, page)
    page.get_by_test_id("create-topic-button").focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("topic-name").focus()
    page.keyboard.type("made.by-keys")
    page.keyboard.press("Tab")
    page.keyboard.type("3")
    page.get_by_test_id("config-retention.ms").focus()
    page.keyboard.type("86400000")
    page.get_by_test_id("create").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/local/topics/made.by-keys$"))
    expect(page.get_by_test_id("tile-partitions")).to_have_text("3")
    assert cluster.configs.of_topics("made.by-keys")["made.by-keys"]["retention.ms"].value == "86400000"


def test_what_the_cluster_refuses_is_told_and_the_dialog_stays(console: ConsoleProcess, page: Page) -> None:
    open_topics(console, page)
    page.get_by_test_id("create-topic-button").click()
    page.get_by_test_id("topic-name").fill("bad name!")
    page.get_by_test_id("create").click()
    expect(page.locator(".console-complaint")).to_contain_text("bad name!")
    expect(page.get_by_test_id("create-topic")).to_be_visible()
    page.get_by_test_id("topic-name").fill("fine")
    page.get_by_test_id("topic-configs").fill("retention.ms")
    page.get_by_test_id("create").click()
    expect(page.locator(".console-complaint", has_text="NAME=VALUE")).to_be_visible()


def test_partitions_with_their_offsets_and_states(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics/orders")
    expect(page.get_by_test_id("tile-records")).to_have_text("50")
    first = page.get_by_test_id("partitions").locator("tbody tr").first
    expect(first).to_contain_text("in sync")
    expect(first).to_contain_text("40")
    expect(page.get_by_test_id("chart-rate").locator("canvas")).to_be_visible()


def test_a_config_shows_help_and_default_and_is_set_and_reset(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    cluster.topics.create("configured", partitions=1)

    def value() -> str | None:
        return cluster.configs.of_topics("configured")["configured"]["max.message.bytes"].value

    page.goto(f"{console.url}/local/topics/configured?tab=configs")
    page.get_by_test_id("config-search").fill("max.message.bytes")
    rows = page.get_by_test_id("configs").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("largest batch")
    page.get_by_test_id("edit-config").click()
    expect(page.get_by_test_id("config-default")).to_have_text("Without it: 1048588")
    page.get_by_test_id("config-value").fill("-5")
    page.get_by_test_id("config-save").click()
    expect(page.locator(".console-complaint")).to_contain_text("max.message.bytes")
    page.get_by_test_id("config-value").fill("2000000")
    page.get_by_test_id("config-save").click()
    expect(rows).to_contain_text("set here")
    assert value() == "2000000"
    page.get_by_test_id("edit-config").click()
    page.get_by_test_id("config-reset").click()
    expect(rows).not_to_contain_text("set here")
    assert value() == "1048588"


def test_who_reads_and_who_writes_a_topic(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics/orders?tab=readers")
    row = page.get_by_test_id("readers").locator("tbody tr")
    expect(row).to_contain_text("billing")
    expect(row).to_contain_text("40")  # 35 + 5: the offset 5 in the empty partition is behind its end
    page.get_by_test_id("tab-producers").click()
    producers = page.get_by_test_id("producers").locator("tbody tr")
    expect(producers).to_have_count(2)


def test_statistics_by_a_scan(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics/orders?tab=statistics")
    page.get_by_test_id("scan-start").click()
    expect(page.get_by_test_id("scan-state")).to_have_text("Done: 50 records")
    figures = page.get_by_test_id("scan-figures")
    expect(figures).to_contain_text("Different keys40")
    expect(figures).to_contain_text("Without a value10 (20 %)")
    expect(page.get_by_test_id("scan-sizes")).to_contain_text("200 B")


def test_a_topic_is_cloned_grown_emptied_and_deleted(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    cluster.topics.create("short-lived", partitions=2, configs={"retention.ms": "1000000"})
    write(cluster._clients.connection.bootstrap, "short-lived", {0: [b"x"] * 7})
    page.goto(f"{console.url}/local/topics/short-lived")
    expect(page.get_by_test_id("tile-records")).to_have_text("7")

    def choose(what: str) -> None:
        page.get_by_test_id("topic-menu").click()
        page.get_by_test_id(what).click()

    choose("add-partitions")
    page.get_by_test_id("ask-value").fill("5")
    page.get_by_test_id("ask-ok").click()
    expect(page.get_by_test_id("tile-partitions")).to_have_text("5")
    choose("empty")
    expect(page.get_by_test_id("confirm-yes")).to_be_disabled()
    page.get_by_test_id("confirm-name").fill("short-lived")
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("tile-records")).to_have_text("0")
    choose("clone")
    page.get_by_test_id("ask-value").fill("second-life")
    page.get_by_test_id("ask-value").press("Enter")
    expect(page).to_have_url(re.compile("/topics/second-life$"))
    expect(page.get_by_test_id("tile-partitions")).to_have_text("5")
    assert cluster.configs.of_topics("second-life")["second-life"]["retention.ms"].value == "1000000"
    choose("delete")
    page.get_by_test_id("confirm-name").fill("second-life")
    page.get_by_test_id("confirm-yes").click()
    expect(page).to_have_url(re.compile("/local/topics$"))
    wait_until(lambda: "second-life" not in [one.name for one in cluster.topics.list()], "the topic is gone")


def test_a_compacted_topic_cannot_be_emptied_and_says_what_to_do(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    cluster.topics.create("compacted", partitions=1, configs={"cleanup.policy": "compact"})
    page.goto(f"{console.url}/local/topics/compacted")
    page.get_by_test_id("topic-menu").click()
    page.get_by_test_id("empty").click()
    page.get_by_test_id("confirm-name").fill("compacted")
    page.get_by_test_id("confirm-yes").click()
    expect(page.locator(".console-complaint")).to_contain_text("tombstones")


def test_two_browsers_at_once_see_what_the_other_did(
    console: ConsoleProcess, pages: Pages, cluster: Cluster
) -> None:
    cluster.topics.create("shared", partitions=1)
    one, other = (pages.open(f"{console.url}/local/topics?search=shared") for _ in range(2))
    for page in (one, other):
        expect(page.get_by_test_id("row-shared")).to_be_visible()
    looking = pages.open(f"{console.url}/local/topics/shared")
    expect(looking.get_by_test_id("tile-partitions")).to_have_text("1")
    one.get_by_test_id("topics").locator("tbody .q-checkbox").click()
    one.get_by_test_id("delete-selected").click()
    one.get_by_test_id("confirm-name").fill("shared")
    one.get_by_test_id("confirm-yes").click()
    expect(other.get_by_test_id("row-shared")).to_have_count(0)
    expect(other.get_by_test_id("count")).to_have_text("0 topics")
    expect(looking.get_by_test_id("missing")).to_be_visible()


def test_a_topic_that_was_never_there_is_told(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/topics/nope?tab=configs")
    expect(page.get_by_test_id("banner-negative")).to_be_visible()
    page.goto(f"{console.url}/local/topics/nope")
    expect(page.get_by_test_id("title")).to_have_text("nope")


def test_only_the_configs_that_differ(console: ConsoleProcess, page: Page, cluster: Cluster) -> None:
    cluster.topics.create("differs", partitions=1)
    cluster.configs.alter(ConfigResource.topic("differs"), set={"segment.bytes": "2000000"})
    page.goto(f"{console.url}/local/topics/differs?tab=configs")
    page.get_by_test_id("config-only-set").click()
    expect(page.get_by_test_id("configs").locator("tbody tr", has_text="segment.bytes")).to_be_visible()
    expect(page.get_by_test_id("configs").locator("tbody tr", has_text="retention.ms")).to_have_count(0)


@pytest.mark.parametrize(
    "path", ["topics", "topics/orders", "topics/orders?tab=configs", "topics/orders?tab=statistics"]
)
def test_the_screens_fit_a_phone(console: ConsoleProcess, pages: Pages, path: str, tmp_path: Path) -> None:
    page = pages.open(f"{console.url}/local/{path}", viewport=PHONE, locale="pt-BR")
    expect(page.get_by_test_id("title")).to_be_visible()
    expect(page.locator("table, [data-testid=scan-start]").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
