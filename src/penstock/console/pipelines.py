"""Pipelines of a cluster ◇: queries of the SQL server, of Spark's drivers, and programs of streams, as rows of one table.

Each tells what it can. A query of SQL and a program of streams commit to a group, so lag and rows per second come from there, and
the size of their state from their changelog topics. A query of Spark tells them itself, on the page of `show_progress`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from penstock.console.clusters.model import ClusterView, GroupKind, GroupRow
from penstock.console.upstream.spark import SparkQuery
from penstock.console.upstream.sql import PERSISTENT, Query

SQL, SPARK, STREAMS = "sql", "spark", "streams"
CHANGELOG, REPARTITION = "-changelog", "-repartition"
RUNNING, FAILED, IDLE = "RUNNING", "ERROR", "IDLE"
BEHIND: Final = (GroupKind.SPARK, GroupKind.STREAMS)


class Pipeline(NamedTuple):
    name: str
    kind: str
    state: str
    tier: str = ""
    tier_reason: str = ""
    rows_per_s: float | None = None
    latency_s: float | None = None
    """Of Spark: how long a batch takes. Of others: how old the oldest record is that waits."""
    lag: int | None = None
    state_bytes: int | None = None
    state_rows: int | None = None
    watermark_s: float | None = None
    error: str = ""
    group: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    statement: str = ""


def pipelines(
    view: ClusterView | None, queries: Iterable[Query], spark: Sequence[SparkQuery]
) -> list[Pipeline]:
    """By kind and name; what has failed first."""
    groups: Mapping[str, GroupRow] = view.groups if view is not None else {}
    changelogs = _changelogs(view)
    found = [_of_sql(each, groups.get(each.group), changelogs) for each in queries if each.kind == PERSISTENT]
    found += [_of_spark(each) for each in spark]
    taken = {each.group for each in found} | {each.name for each in found}
    for name, group in groups.items():
        if name not in taken and (group.kind in BEHIND or name in changelogs):
            found.append(_of_group(group, changelogs))
    return sorted(found, key=lambda each: (each.state != FAILED, each.kind, each.name))


def _of_sql(query: Query, group: GroupRow | None, changelogs: Mapping[str, int]) -> Pipeline:
    return Pipeline(
        query.id,
        SQL,
        query.state,
        query.tier,
        query.tier_reason,
        group.per_second if group else None,
        group.lag_s if group else None,
        group.lag if group else None,
        changelogs.get(query.group),
        error=query.errors[-1][1] if query.errors else "",
        group=query.group if group else "",
        reads=query.sources,
        writes=query.sinks,
        statement=query.statement,
    )


def _of_spark(query: SparkQuery) -> Pipeline:
    return Pipeline(
        query.name,
        SPARK,
        RUNNING if query.failed_s is None else FAILED,
        "SPARK",
        rows_per_s=query.rows_per_second,
        latency_s=query.batch_s,
        lag=query.lag,
        state_bytes=query.state_bytes,
        state_rows=query.state_rows,
        watermark_s=query.watermark_s,
        error=query.error,
    )


def _of_group(group: GroupRow, changelogs: Mapping[str, int]) -> Pipeline:
    is_spark = group.kind is GroupKind.SPARK
    has_members = group.members is None or group.members > 0
    return Pipeline(
        group.name,
        SPARK if is_spark else STREAMS,
        RUNNING
        if group.state in ("Stable", RUNNING) or (is_spark and group.per_second)
        else group.state or IDLE,
        "SPARK" if is_spark else "LONG_TASKS" if has_members else "",
        rows_per_s=group.per_second,
        latency_s=group.lag_s,
        lag=group.lag,
        state_bytes=changelogs.get(group.name),
        error=group.error,
        group=group.name,
        reads=tuple(each for each in group.topics if not each.endswith((CHANGELOG, REPARTITION))),
    )


def _changelogs(view: ClusterView | None) -> dict[str, int]:
    """Of each group that has topics of a program of streams: bytes of its changelogs."""
    if view is None:
        return {}
    found: dict[str, int] = {}
    for name, topic in view.topics.items():
        if not name.endswith((CHANGELOG, REPARTITION)):
            continue
        group = _owner(name, view.groups)
        if group:
            size = topic.size_bytes or 0 if name.endswith(CHANGELOG) else 0
            found[group] = found.get(group, 0) + size
    return found


def _owner(topic: str, groups: Mapping[str, GroupRow]) -> str:
    """The longest group whose name the topic begins with: `shop-totals-KSTREAM-…-changelog` is of `shop-totals`."""
    at = topic.rfind("-")
    while at > 0:
        if topic[:at] in groups:
            return topic[:at]
        at = topic.rfind("-", 0, at)
    return ""
