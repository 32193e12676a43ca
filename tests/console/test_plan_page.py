"""The screen of the plan."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.console.console_process import PHONE, ConsoleProcess, Pages


def test_the_plan_follows_what_is_typed(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/plan")
    expect(page.get_by_test_id("tile-min_isr")).to_have_text("2")
    expect(page.get_by_test_id("plan-chart-disk").locator("canvas")).to_be_visible()
    expect(page.get_by_test_id("plan-commands")).to_contain_text("penstock topics create")
    before = page.get_by_test_id("tile-disk").inner_text()
    page.get_by_test_id("plan-retention_s").fill("1 day")
    expect(page.get_by_test_id("tile-disk")).not_to_have_text(before)
    page.get_by_test_id("plan-replication").fill("1")
    expect(page.get_by_test_id("tile-replication")).to_have_text("1")
    expect(page.get_by_test_id("plan-lines")).to_contain_text("1 day")


def test_a_figure_that_cannot_be_meant_is_told_beside_its_name(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/plan")
    page.get_by_test_id("plan-bytes_per_s").fill("fast")
    expect(page.get_by_test_id("plan-problem")).to_contain_text("'fast' does not begin with a number")
    page.get_by_test_id("plan-bytes_per_s").fill("20000 records/s")
    expect(page.get_by_test_id("plan-problem")).to_be_empty()
    page.get_by_test_id("plan-replication").fill("<b>three</b>")
    expect(page.get_by_test_id("plan-problem")).to_contain_text(
        "Replicas: '<b>three</b>' is not a whole number"
    )


def test_the_figures_of_the_cluster_are_measured(
    console: ConsoleProcess, broker: PenstockBroker, topic_name: str, page: Page
) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=3)
    page.goto(f"{console.url}/local/plan")
    page.get_by_test_id("plan-measure").click()
    expect(page.get_by_test_id("plan-told")).to_contain_text("on 1 brokers take", timeout=60_000)
    expect(page.get_by_test_id("plan-findings")).not_to_be_empty()
    expect(page.get_by_test_id("plan-measure")).to_be_enabled()


def test_the_screen_fits_a_phone(console: ConsoleProcess, pages: Pages) -> None:
    phone = pages.open(f"{console.url}/local/plan", viewport=PHONE)
    expect(phone.get_by_test_id("tile-partitions")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
