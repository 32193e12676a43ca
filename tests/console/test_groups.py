"""The list of groups and the page of one, in a real browser: lag, members, and where a group is sent."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from penstock.admin import Cluster, TopicPartition
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.console.clusters.look import Looker
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import WAIT_S, wait_until
from tests.conftest import BROKER_OPTIONS
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.watching import commit, member_of, watching, write

HOSTILE = '<img src=x onerror="document.title=1"> {{ 7*7 }} a/b?c#d'


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=BROKER_OPTIONS) as running:
        with Cluster(running.bootstrap) as cluster:
            cluster.topics.create("orders", partitions=3)
            cluster.topics.create("payments", partitions=2)
            cluster.topics.create("__penstock_spark_batches", partitions=1)
            write(running.bootstrap, "orders", {number: [b"x"] * 100 for number in range(3)})
            write(running.bootstrap, "payments", {number: [b"x"] * 50 for number in range(2)})
            for name in (HOSTILE, "connect-jdbc", "importer", "spark-kafka-source-12-driver-0"):
                commit(running.bootstrap, name, "orders", 90)
            cluster.groups.commit(
                "penstock-spark-totals", {TopicPartition("__penstock_spark_batches", 0): 17}
            )
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


def offsets(cluster: Cluster, group: str) -> dict[str, int]:
    return {str(one): committed.offset for one, committed in sorted(cluster.groups.committed(group).items())}


def open_group(console: ConsoleProcess, page: Page, group: str) -> None:
    page.goto(f"{console.url}/local/groups")
    page.get_by_test_id("search").fill(group)
    link = page.get_by_test_id(f"row-{group}").get_attribute("href")
    # No click: the row is replaced at each look at the cluster, perhaps between a button's down and up.
    page.goto(f"{console.url}{link}")
    expect(page.get_by_test_id("title")).to_have_text(group)


def open_reset(console: ConsoleProcess, page: Page, group: str, form: str) -> None:
    open_group(console, page, group)
    page.get_by_test_id("reset").click()
    page.get_by_test_id("reset-form").click()
    page.get_by_role("option", name=form, exact=True).click()


def plan_and_execute(page: Page) -> None:
    expect(page.get_by_test_id("reset-execute")).to_be_disabled()
    page.get_by_test_id("reset-plan").click()
    expect(page.get_by_test_id("plan-sum")).to_be_visible()
    page.get_by_test_id("reset-execute").click()
    expect(page.get_by_test_id("reset-dialog")).to_be_hidden()


def test_groups_are_listed_as_what_they_are_with_their_lag(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/groups")
    table = page.get_by_test_id("groups")
    row = table.locator("tbody tr", has_text="importer")
    expect(row).to_contain_text("Offsets only")
    expect(row).to_contain_text("30")
    expect(table.locator("tbody tr", has_text="connect-jdbc")).to_contain_text("Connect sink")
    expect(table.locator("tbody tr", has_text="penstock-spark-totals")).to_contain_text("Spark query")
    page.get_by_test_id("kind").click()
    page.get_by_role("option", name="Spark query").click()
    expect(page.get_by_test_id("count")).to_have_text("2 groups")


def test_a_name_with_html_and_slashes_is_text_and_has_a_page(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    open_group(console, page, HOSTILE)
    expect(page.get_by_test_id("partitions").locator("tbody tr")).to_have_count(3)
    assert page.title().startswith(HOSTILE)
    assert page.locator('img[src="x"]').count() == 0
    page.get_by_test_id("group-menu").click()
    page.get_by_test_id("delete").click()
    page.get_by_test_id("confirm-name").fill(HOSTILE)
    page.get_by_test_id("confirm-yes").click()
    expect(page).to_have_url(re.compile("/local/groups$"))
    wait_until(lambda: HOSTILE not in [one.group_id for one in cluster.groups.list()], "the group is gone")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shows_members_and_lag_that_shrinks(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, protocol: str
) -> None:
    group = f"reading-{protocol}"
    commit(own_broker.bootstrap, group, "orders", 40)
    member = member_of(
        own_broker.bootstrap, group, "orders", **{"group.protocol": protocol, "client.id": "the-app"}
    )
    try:
        open_group(console, page, group)
        expect(page.get_by_test_id("tile-lag")).to_have_text("180")
        expect(page.get_by_test_id("tile-members")).to_have_text("1")
        expect(page.get_by_test_id("members").locator("tbody tr")).to_contain_text("the-app")
        expect(page.get_by_test_id("members").locator("tbody tr")).to_contain_text("orders:0,1,2")
        page.get_by_test_id("reset").click()
        page.get_by_test_id("reset-plan").click()
        expect(page.locator(".console-complaint")).to_contain_text("has 1 members")
        expect(page.get_by_test_id("reset-execute")).to_be_disabled()
    finally:
        member.close()
    expect(page.get_by_test_id("tile-state")).to_have_text("Empty")


def test_what_a_member_reads_is_shown_before_it_commits(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker
) -> None:
    member = member_of(own_broker.bootstrap, "silent", "payments", **{"client.id": "quiet-app"})
    try:
        open_group(console, page, "silent")
        rows = page.get_by_test_id("partitions").locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("quiet-app")
        page.goto(f"{console.url}/local/topics/payments?tab=readers")
        expect(page.get_by_test_id("readers").locator("tbody tr", has_text="silent")).to_be_visible()
    finally:
        member.close()


def test_nothing_is_written_before_the_plan_is_executed(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, cluster: Cluster
) -> None:
    commit(own_broker.bootstrap, "careful", "orders", 70)
    open_reset(console, page, "careful", "the first record")
    page.get_by_test_id("reset-plan").click()
    expect(page.get_by_test_id("plan-sum")).to_have_text(
        "3 partitions; 210 records are read again, 0 are left out"
    )
    assert set(offsets(cluster, "careful").values()) == {70}
    page.get_by_test_id("reset-execute").click()
    expect(page.get_by_test_id("tile-lag")).to_have_text("300")
    assert offsets(cluster, "careful") == {"orders-0": 0, "orders-1": 0, "orders-2": 0}


def test_a_shift_goes_no_further_than_the_log_and_only_to_the_partitions_named(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, cluster: Cluster
) -> None:
    commit(own_broker.bootstrap, "shifted", "orders", 20)
    open_reset(console, page, "shifted", "shift by records")
    page.get_by_test_id("reset-value").fill("-50")
    page.get_by_test_id("reset-partitions").fill("0,2")
    page.get_by_test_id("reset-plan").click()
    expect(page.get_by_test_id("plan")).to_contain_text("moved into the log")
    page.get_by_test_id("reset-execute").click()
    expect(page.get_by_test_id("tile-lag")).to_have_text("280")
    assert offsets(cluster, "shifted") == {"orders-0": 0, "orders-1": 20, "orders-2": 0}


def test_each_partition_of_many_topics_gets_its_own_value(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, cluster: Cluster
) -> None:
    for topic in ("orders", "payments"):
        commit(own_broker.bootstrap, "precise", topic, 10)
    open_reset(console, page, "precise", "a value for each partition")
    values = page.get_by_test_id("reset-values")
    expect(values).to_have_value(
        re.compile("orders:0=10\norders:1=10\norders:2=10\npayments:0=10\npayments:1=10")
    )
    values.fill("orders:1=33\npayments:0=9999\npayments:x=1")
    page.get_by_test_id("reset-plan").click()
    expect(page.locator(".console-complaint")).to_contain_text("'x'")
    values.fill("orders:1=33\npayments:0=9999")
    plan_and_execute(page)
    assert offsets(cluster, "precise") == {
        "orders-0": 10, "orders-1": 33, "orders-2": 10, "payments-0": 50, "payments-1": 10,
    }  # fmt: skip


def test_to_a_time_and_to_the_end(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, cluster: Cluster
) -> None:
    commit(own_broker.bootstrap, "timed", "payments", 7)
    open_reset(console, page, "timed", "a time ago")
    page.get_by_test_id("reset-value").fill("yesterday")
    page.get_by_test_id("reset-plan").click()
    expect(page.locator(".console-complaint")).to_contain_text("Duration")
    page.get_by_test_id("reset-value").fill("P1D")
    plan_and_execute(page)
    assert offsets(cluster, "timed") == {"payments-0": 0, "payments-1": 0}
    open_reset(console, page, "timed", "the end")
    plan_and_execute(page)
    assert offsets(cluster, "timed") == {"payments-0": 50, "payments-1": 50}


def test_offsets_of_one_topic_are_forgotten(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker, cluster: Cluster
) -> None:
    for topic in ("orders", "payments"):
        commit(own_broker.bootstrap, "forgetful", topic, 1)
    open_group(console, page, "forgetful")
    page.get_by_test_id("group-menu").click()
    page.get_by_test_id("forget").click()
    page.get_by_test_id("offset-topics").click()
    page.get_by_role("option", name="payments").click()
    page.keyboard.press("Escape")
    page.get_by_test_id("delete-offsets").click()
    expect(page.get_by_test_id("delete-offsets-dialog")).to_be_hidden()
    assert {one.partition("-")[0] for one in offsets(cluster, "forgetful")} == {"orders"}


def test_the_marks_of_a_spark_query_have_no_lag_and_cannot_be_reset(
    console: ConsoleProcess, page: Page
) -> None:
    open_group(console, page, "penstock-spark-totals")
    expect(page.get_by_test_id("banner-info")).to_contain_text("exactly-once")
    expect(page.get_by_test_id("tile-lag")).to_have_text("–")
    expect(page.get_by_test_id("reset")).to_have_count(0)


def test_lag_in_seconds_grows_while_nobody_reads(
    console: ConsoleProcess, page: Page, own_broker: PenstockBroker
) -> None:
    commit(own_broker.bootstrap, "waiting", "payments", 50)
    open_group(console, page, "waiting")
    expect(page.get_by_test_id("tile-lag_s")).to_have_text("0 s")
    write(own_broker.bootstrap, "payments", {0: [b"late"]})
    expect(page.get_by_test_id("tile-lag")).to_have_text("1")
    expect(page.get_by_test_id("tile-lag_s")).to_have_text(re.compile(r"^[1-9]"))
    expect(page.get_by_test_id("chart-lag-s").locator("canvas")).to_be_visible()


def test_a_lag_in_seconds_from_before_the_console_came_is_told_by_the_records(
    own_broker: PenstockBroker,
) -> None:
    began_ms = round(time.time() * 1000) - 1_000_000
    with Cluster(own_broker.bootstrap) as cluster:
        cluster.topics.create("old", partitions=2)
        producer = Producer({"bootstrap.servers": own_broker.bootstrap, "log_level": 0})
        for number in range(200):
            for partition in range(2):
                producer.produce("old", b"x" * 3000, partition=partition, timestamp=began_ms + 1000 * number)
        assert producer.flush(WAIT_S) == 0
        cluster.groups.commit("stuck", {TopicPartition("old", 0): 0, TopicPartition("old", 1): 150})
    with ClusterClient(Connection(own_broker.bootstrap)) as client:
        view = Looker().look(client)
    first, second = view.groups["stuck"].partitions
    assert (first.lag, second.lag) == (200, 50)
    assert first.lag_s == pytest.approx(1000, abs=60)
    assert second.lag_s == pytest.approx(850, abs=60)


@pytest.mark.parametrize("path", ["groups", "groups/importer"])
def test_the_screens_fit_a_phone(console: ConsoleProcess, pages: Pages, path: str) -> None:
    page = pages.open(f"{console.url}/local/{path}", viewport=PHONE, locale="pt-BR")
    expect(page.locator("tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
