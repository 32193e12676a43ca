"""Rows and views for tests, with what the test does not care about filled in."""

from collections.abc import Iterable

from penstock.admin.health import Health, PartitionState
from penstock.console.clusters.model import (
    BrokerRow,
    ClusterView,
    GroupKind,
    GroupRow,
    PartitionRow,
    TopicRow,
    Totals,
)
from penstock.model.ids import TopicPartition


def topic(
    name: str,
    *,
    partitions: int = 1,
    per_second: float | None = 0.0,
    size_bytes: int | None = 0,
    offline: int = 0,
    under_replicated: int = 0,
    is_internal: bool = False,
) -> TopicRow:
    rows = tuple(PartitionRow(number, 1, 0, (1,), (1,), 0, 0, 0, 0.0) for number in range(partitions))
    return TopicRow(name, "", is_internal, rows, 1, 0, size_bytes, per_second, offline, under_replicated)


def group(
    name: str,
    *,
    lag: int | None = 0,
    lag_s: float | None = 0.0,
    kind: GroupKind = GroupKind.CLASSIC,
    error: str = "",
) -> GroupRow:
    return GroupRow(name, kind, "Stable", "Classic", "consumer", 1, 1, (), (), lag, lag_s, 0.0, error)


def broker(number: int, *, answers: bool = True, usable_bytes: int = 50, total_bytes: int = 100) -> BrokerRow:
    return BrokerRow(
        number, f"host-{number}", 9092, None, number == 1, 1, 1, 1, total_bytes, usable_bytes, answers
    )


def state(
    name: str, *, leader: int = 1, replicas: Iterable[int] = (1, 2), isr: Iterable[int] = (1, 2)
) -> PartitionState:
    return PartitionState(TopicPartition(name, 0), leader, list(replicas), list(isr))


def healthy() -> Health:
    return Health("id", 1, [], [], 2, [], [], [], [])


def view(
    topics: Iterable[TopicRow] = (),
    groups: Iterable[GroupRow] = (),
    *,
    at_s: float = 1000.0,
    health: Health | None = None,
    brokers: Iterable[BrokerRow] = (),
    totals: Totals | None = None,
) -> ClusterView:
    return ClusterView(
        at_s=at_s, took_s=0.1, requests=5, cluster_id="id", controller=1, brokers=tuple(brokers),
        topics={one.name: one for one in topics}, groups={one.name: one for one in groups}, readers={},
        health=health or healthy(), totals=totals or Totals(),
    )  # fmt: skip
