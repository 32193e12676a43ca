"""The first screen in a real browser, on a cluster that may go away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.console.clusters.look import Looker
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import BROKER_OPTIONS
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.watching import commit, watching, write


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=BROKER_OPTIONS) as running:
        with Cluster(running.bootstrap) as cluster:
            cluster.topics.create("orders", partitions=3)
        write(running.bootstrap, "orders", {0: [b"x"] * 100})
        commit(running.bootstrap, "billing", "orders", 25)
        yield running


@pytest.fixture(scope="module")
def console(
    start_console: StartConsole, own_broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    # A broker at an address where nobody listens is a cluster that has never answered.
    clusters = {"local": own_broker.bootstrap, "away": "127.0.0.1:1"}
    return watching(start_console, tmp_path_factory.mktemp("settings"), clusters)


def test_health_figures_charts_and_brokers(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    expect(page.get_by_test_id("health-line")).to_contain_text("Healthy")
    expect(page.get_by_test_id("tile-lag")).to_have_text("75")
    expect(page.get_by_test_id("tile-groups")).to_have_text("1")
    expect(page.get_by_test_id("brokers").locator("tbody tr")).to_contain_text("serves, controller")
    for chart in ("records", "lag", "lag-s", "size"):
        expect(page.get_by_test_id(f"chart-{chart}").locator("canvas")).to_be_visible()
    page.get_by_test_id("tile-groups").click()
    expect(page).to_have_url(re.compile("/local/groups$"))


def test_what_flows_is_shown_without_a_reload(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker
) -> None:
    page.goto(f"{console.url}/local")
    expect(page.get_by_test_id("tile-records_in")).to_have_text("0")
    for _ in range(20):
        write(own_broker.bootstrap, "orders", {1: [b"y"] * 50})
        if page.get_by_test_id("tile-records_in").text_content() not in ("0", "–"):
            break
        page.wait_for_timeout(200)
    expect(page.get_by_test_id("tile-records_in")).not_to_have_text("–")


def test_a_closer_look_names_what_is_unwise_and_the_command(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local")
    page.get_by_test_id("examine").click()
    findings = page.get_by_test_id("advice-finding")
    expect(findings.first).to_be_visible(timeout=60_000)
    findings.first.click()
    expect(page.get_by_text(re.compile("^Examined at"))).to_be_visible()


def test_a_cluster_that_never_answered_says_so_on_every_screen(console: ConsoleProcess, page: Page) -> None:
    for path in ("", "/topics", "/groups", "/cluster"):
        page.goto(f"{console.url}/away{path}")
        expect(page.get_by_test_id("stale")).to_contain_text("does not answer")


def test_in_portuguese_and_on_a_phone(console: ConsoleProcess, pages: Pages) -> None:
    page = pages.open(f"{console.url}/local", viewport=PHONE, locale="pt-BR", dark=True)
    expect(page.get_by_test_id("health-line")).to_contain_text("Saudável")
    expect(page.get_by_test_id("chart-lag").locator("canvas")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_broker_is_killed_while_one_looks_and_comes_back(
    start_console: StartConsole, pages: Pages, tmp_path: Path
) -> None:
    broker = PenstockBroker(tmp_path, options=BROKER_OPTIONS)
    try:
        with Cluster(broker.bootstrap) as cluster:
            cluster.topics.create("orders", partitions=1)
            cluster.topics.create("payments", partitions=1)
        console = watching(start_console, tmp_path, {"local": broker.bootstrap})
        page = pages.open(f"{console.url}/local/topics")
        expect(page.get_by_test_id("row-orders")).to_be_visible()
        expect(page.get_by_test_id("stale")).to_be_hidden()
        broker.process.kill()
        expect(page.get_by_test_id("stale")).to_contain_text("has not answered since")
        page.get_by_test_id("search").fill("pay")
        expect(page.get_by_test_id("row-orders")).to_have_count(0)
        expect(page.get_by_test_id("row-payments")).to_be_visible()
        page.get_by_test_id("create-topic-button").click()
        page.get_by_test_id("topic-name").fill("not-now")
        page.get_by_test_id("create").click()
        expect(page.locator(".console-complaint")).to_be_visible()
        page.keyboard.press("Escape")
        broker = PenstockBroker(tmp_path, options=BROKER_OPTIONS, port=broker.port)
        expect(page.get_by_test_id("stale")).to_be_hidden()
        pages.forget_errors("WebSocket")
    finally:
        broker.stop()


def test_what_a_look_costs_does_not_depend_on_how_many_topics_and_groups_there_are(
    own_broker: PenstockBroker,
) -> None:
    looker = Looker()
    with ClusterClient(Connection(own_broker.bootstrap)) as client:
        looker.look(client)
        few = looker.look(client).requests
        with Cluster(own_broker.bootstrap) as cluster:
            for number in range(30):
                cluster.topics.create(f"more-{number}", partitions=2)
                commit(own_broker.bootstrap, f"group-{number}", f"more-{number}", 0)
        view = looker.look(client)
    assert len(view.groups) >= 31
    assert view.requests <= few + 1, "the first offsets of new partitions are asked once"
