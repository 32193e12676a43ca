"""The cluster's own screen, on three brokers: leaders, moves with progress, configs, a broker that dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from penstock.admin import Cluster, ConfigResource, TopicPartition
from penstock.testing.penstock_cluster import PenstockCluster
from tests.clients.driver import wait_until
from tests.conftest import BROKER_OPTIONS
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages
from tests.console.watching import watching, write

LONG_MS = 60_000
"""A broker that was killed is missed when its session with ZooKeeper is over."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockCluster]:
    options = {**BROKER_OPTIONS, "auto.leader.rebalance.enable": "false"}
    with PenstockCluster(tmp_path_factory.mktemp("cluster"), options=options) as running:
        with Cluster(running.bootstrap) as cluster:
            cluster.topics.create("orders", assignment=[[1, 2], [2, 1]])
            cluster.topics.create("payments", assignment=[[3, 1]])
        write(running.bootstrap, "orders", {0: [b"x" * 1000] * 50})
        yield running


@pytest.fixture(scope="module")
def console(
    start_console: StartConsole, brokers: PenstockCluster, tmp_path_factory: pytest.TempPathFactory
) -> ConsoleProcess:
    return watching(start_console, tmp_path_factory.mktemp("settings"), {"local": brokers.bootstrap})


@pytest.fixture
def cluster(brokers: PenstockCluster) -> Iterator[Cluster]:
    with Cluster(brokers.bootstrap) as opened:
        yield opened


def replicas(cluster: Cluster, topic: str) -> list[tuple[int, ...]]:
    return [one.replicas for one in cluster.topics.describe(topic)[0].partitions]


def begin(page: Page, what: str, **fields: str) -> None:
    page.get_by_test_id("tab-moves").click()
    page.get_by_test_id(what).click()
    for name, value in fields.items():
        field = page.get_by_test_id(f"move-{name}")
        if name in ("broker", "substitute"):
            field.click()
            page.get_by_role("option", name=value, exact=True).click()
        else:
            field.fill(value)
    page.get_by_test_id("move-begin").click()


def test_brokers_and_their_share(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/cluster")
    rows = page.get_by_test_id("brokers").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(page.get_by_test_id("brokers").get_by_text("serves, controller")).to_have_count(1)


def test_a_partition_is_moved_with_a_throttle_and_progress(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    page.goto(f"{console.url}/local/cluster")
    begin(page, "move", partition="orders-0", replicas="3, 2", throttle="5000000")
    expect(page.get_by_test_id("run-state")).to_have_text("Done: 1 partitions moved", timeout=LONG_MS)
    assert replicas(cluster, "orders")[0] == (3, 2)
    entries = cluster.configs.describe(ConfigResource.topic("orders"))
    assert not [one for one in entries if "throttled" in one.name and one.value], "the throttle is gone again"


def test_what_cannot_be_moved_is_told(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/cluster")
    begin(page, "move", partition="orders-7", replicas="1", throttle="")
    expect(page.locator(".console-complaint")).to_contain_text("orders-7")
    page.get_by_test_id("move-partition").fill("orders-1")
    page.get_by_test_id("move-throttle").fill("5")
    page.get_by_test_id("move-begin").click()
    expect(page.locator(".console-complaint", has_text="would never end")).to_be_visible()


def test_preferred_leaders_get_their_partitions_back(
    console: ConsoleProcess, page: Page, cluster: Cluster
) -> None:
    cluster.moves.start({TopicPartition("payments", 0): [1, 3]})
    wait_until(
        lambda: not cluster.moves.ongoing() and replicas(cluster, "payments") == [(1, 3)], "it has moved"
    )
    page.goto(f"{console.url}/local/cluster")
    page.get_by_test_id("elect").click()
    page.get_by_test_id("confirm-yes").click()
    expect(page.get_by_test_id("balance")).to_have_text("Every partition is led by its preferred replica.")
    assert cluster.topics.describe("payments")[0].partitions[0].leader == 1


def test_configs_of_one_broker_and_of_all(console: ConsoleProcess, page: Page, cluster: Cluster) -> None:
    page.goto(f"{console.url}/local/cluster")
    page.get_by_test_id("tab-configs").click()
    page.get_by_test_id("config-search").fill("log.retention.ms")
    rows = page.get_by_test_id("configs").locator("tbody tr")
    expect(rows).to_have_count(1)
    page.get_by_test_id("edit-config").click()
    page.get_by_test_id("config-value").fill("123456789")
    page.get_by_test_id("config-save").click()
    expect(rows).to_contain_text("set here")
    entries = {one.name: one for one in cluster.configs.describe(ConfigResource.broker(1))}
    assert entries["log.retention.ms"].value == "123456789"
    page.get_by_test_id("edit-config").click()
    page.get_by_test_id("config-reset").click()
    expect(rows).not_to_contain_text("set here")


def test_a_broker_that_dies_is_told_and_its_substitute_takes_over(
    console: ConsoleProcess, page: Page, pages: Pages, brokers: PenstockCluster, cluster: Cluster
) -> None:
    page.goto(f"{console.url}/local")
    expect(page.get_by_test_id("health-line")).to_contain_text("Healthy")
    brokers.kill(2)
    finding = page.get_by_test_id("finding").first
    expect(finding).to_be_visible(timeout=LONG_MS)
    expect(page.get_by_test_id("health-line")).to_contain_text("needs attention")
    expect(page.get_by_test_id("health")).to_contain_text(
        "Brokers are away that should keep partitions", timeout=LONG_MS
    )
    page.goto(f"{console.url}/local/cluster")
    begin(page, "replace", broker="2", substitute="1")
    expect(page.get_by_test_id("run")).to_contain_text("move all replicas of broker 2 to broker 1")
    expect(page.get_by_test_id("run-state")).to_contain_text("Done", timeout=LONG_MS)
    assert all(2 not in each for topic in ("orders", "payments") for each in replicas(cluster, topic))
    phone = pages.open(f"{console.url}/local/cluster", viewport=PHONE)
    expect(phone.get_by_test_id("brokers").locator("tbody tr")).to_have_count(2)
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
