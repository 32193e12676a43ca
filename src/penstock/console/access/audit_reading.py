"""The newest entries of an audit log's topic, for the page that shows them. Blocks."""

from __future__ import annotations

import time
from typing import Any, Final

import orjson

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.errors import NoSuchTopic
from penstock.model.ids import TopicPartition

READ_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.2
GROUP: Final = "penstock-console-audit"
"""Needed by the consumer; nothing is committed for it."""


def newest(cluster: Cluster, connection: Connection, topic: str, count: int) -> list[dict[str, Any]]:
    """The newest first. What is no entry of ours is left out; nothing where the topic is not there yet."""
    try:
        spans = cluster.offsets.spans(topic)
    except NoSuchTopic:
        return []
    found: list[dict[str, Any]] = []
    for partition, (first, end) in spans.items():
        if end > first:
            found += _read(connection, partition, max(first, end - count), end)
    found.sort(key=lambda entry: int(entry["time_ms"]), reverse=True)
    return found[:count]


def _read(connection: Connection, partition: TopicPartition, first: int, end: int) -> list[dict[str, Any]]:
    from confluent_kafka import TopicPartition as Place

    consumer = connection.consumer(
        {"group.id": GROUP, "enable.auto.commit": "false", "enable.partition.eof": "true"}
    )
    found = []
    ends_s = time.monotonic() + READ_TIMEOUT_S
    try:
        consumer.assign([Place(partition.topic, partition.partition, first)])
        at = first
        while at < end and time.monotonic() < ends_s:
            record = consumer.poll(POLL_S)
            if record is None:
                continue
            if record.error() is not None:
                break  # the end, or nothing to be had
            at = int(record.offset() or 0) + 1
            entry = _entry(record.value())
            if entry is not None:
                found.append(entry)
    finally:
        consumer.close()
    return found


def _entry(value: bytes | None) -> dict[str, Any] | None:
    try:
        entry = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("time_ms"), int) else None
