"""How far the compaction of a topic is, as Penstock's brokers tell it; others tell nothing, and nothing is shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.cli.clients import Connection
    from penstock.wire.messages.describe_log_dirs import PenstockCleaner

COLUMNS = ("partition", "dirty", "last run", "took", "removed", "kept", "now")


def ask_cleaners(
    connection: Connection, leaders: dict[TopicPartition, int]
) -> dict[TopicPartition, PenstockCleaner]:
    """What each leader (a broker id) says of its partition."""
    from penstock.cli.kafka.broker_api_versions import list_brokers
    from penstock.cli.wire_client import UnsupportedByBroker
    from penstock.model.endpoints import Address
    from penstock.wire.messages.describe_log_dirs import (
        DescribableLogDirTopic,
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
    )

    found: dict[TopicPartition, PenstockCleaner] = {}
    for broker in list_brokers(connection):
        asked: dict[str, list[int]] = {}
        for (topic, partition), leader in leaders.items():
            if leader == broker.node_id:
                asked.setdefault(topic, []).append(partition)
        if not asked:
            continue
        topics = [DescribableLogDirTopic(topic=topic, partitions=parts) for topic, parts in asked.items()]
        try:
            with connection.wire(Address(broker.host, broker.port)) as client:
                answer = client.ask(DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
        except UnsupportedByBroker:
            continue
        for directory in answer.results:
            for held in directory.topics:
                for one in held.partitions:
                    for cleaner in one.penstock_cleaner:
                        found[TopicPartition(held.name, one.partition_index)] = cleaner
    return found


def as_json(cleaner: PenstockCleaner) -> dict[str, Any]:
    has_run = cleaner.runs > 0
    return {
        "dirty_ratio": round(cleaner.dirty_ratio, 4),
        "is_cleanable": cleaner.is_cleanable,
        "progress": cleaner.progress if cleaner.progress >= 0 else None,
        "runs": cleaner.runs,
        "last_run_ms": cleaner.last_run_ms if has_run else None,
        "last_duration_ms": cleaner.last_duration_ms if has_run else None,
        "bytes_read": cleaner.bytes_read,
        "bytes_written": cleaner.bytes_written,
        "records_removed": cleaner.records_removed,
        "records_kept": cleaner.records_kept,
        "uncleanable_reason": cleaner.uncleanable_reason or None,
    }


def as_row(partition: int, cleaner: PenstockCleaner) -> list[object]:
    has_run = cleaner.runs > 0
    age_s = time.time() - cleaner.last_run_ms / 1000
    return [
        partition,
        f"{cleaner.dirty_ratio:.0%}",
        f"{ago(age_s)} ago" if has_run else "none yet",
        f"{cleaner.last_duration_ms / 1000:.1f} s" if has_run else "",
        cleaner.records_removed if has_run else "",
        cleaner.records_kept if has_run else "",
        state_of(cleaner),
    ]


def state_of(cleaner: PenstockCleaner) -> str:
    if cleaner.uncleanable_reason:
        return f"cannot be compacted: {cleaner.uncleanable_reason}"
    if cleaner.progress >= 0:
        return f"running, {cleaner.progress:.0%} done"
    return "due" if cleaner.is_cleanable else "waiting"


def ago(seconds: float) -> str:
    """In one unit: 12 s, 3 min, 5 h, 2 d."""
    whole = max(int(seconds), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
