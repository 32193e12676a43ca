"""What has been replayed of a dead letter topic, kept where it stays.

The offsets of the group `penstock-dlq-replay` say it, and are read at once. But the cluster forgets offsets of a group without
members after `offsets.retention.minutes`, 7 days unless changed. So each transaction of a replay also writes a record to a
compacted topic, which keeps the last one of each partition:

    topic __penstock_dlq_replays: key "orders.dlq-0", value "17 replayed:…", header topic-id "nXr2…"

It is looked for where the group has no offset. That is also so when the dead letter topic was deleted and made again, and its id
tells that nothing of it has been replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from penstock.client.clients import Connection, result, translated
from penstock.client.errors import Unreachable

log = logging.getLogger("penstock.admin")

MARK_TOPIC = "__penstock_dlq_replays"
MARK_TOPIC_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(4 * 1024 * 1024)}
TOPIC_ID = "topic-id"
TIMEOUT_S = 30.0


def mark_record(
    topic: str, topic_id: str, partition: int, start_offset: int, metadata: str
) -> dict[str, Any]:
    return {
        "topic": MARK_TOPIC,
        "partition": 0,
        "key": f"{topic}-{partition}",
        "value": f"{start_offset} {metadata}",
        "headers": [(TOPIC_ID, topic_id.encode())],
    }


def ensure_mark_topic(connection: Connection) -> None:
    from confluent_kafka import KafkaException

    from penstock.consumer.made_topics import made_patiently, make_internal_topic

    def make() -> None:
        admin = connection.admin()  # another one each time: it stays with the controller that it knows
        make_internal_topic(
            admin, MARK_TOPIC, partitions=1, settings=MARK_TOPIC_SETTINGS, timeout_s=TIMEOUT_S
        )

    try:
        made_patiently(make, MARK_TOPIC, timeout_s=TIMEOUT_S, log=log)
    except KafkaException as error:
        raise translated(error) from None


def topic_id_of(connection: Connection, topic: str) -> str:
    """Tells it from one of the same name that is made later."""
    from confluent_kafka import TopicCollection

    admin = connection.admin()  # held until the answer is here
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_S)
    return str(result(described[topic]).topic_id)


def read_marks(connection: Connection, topic: str, topic_id: str) -> Mapping[int, tuple[int, str]]:
    """Partition → (start offset, metadata), as the last replay wrote them. The topic of the marks must be there."""
    from confluent_kafka import KafkaException, TopicPartition

    from penstock.consumer.kept_records import NotDecided, read_kept

    def partition_of(key: bytes) -> int | None:
        name, _, partition = key.decode(errors="replace").rpartition("-")
        return int(partition) if name == topic and partition.isdecimal() else None

    try:
        kept = read_kept(
            lambda settings: connection.consumer(
                {**settings, "group.id": MARK_TOPIC, "client.id": "penstock-dlq"}
            ),
            TopicPartition(MARK_TOPIC, 0),
            lambda key: partition_of(key) is not None,
            patience_s=TIMEOUT_S,
        )
    except NotDecided as error:
        raise Unreachable(f"{error}; try again.") from None
    except KafkaException as error:
        raise translated(error) from None
    marks: dict[int, tuple[int, str]] = {}
    for message in kept:
        partition = partition_of(_bytes(message.key()))
        assert partition is not None
        marks.pop(partition, None)
        # Marks of earlier versions do not say which topic they mean.
        if dict(message.headers() or ()).get(TOPIC_ID, topic_id.encode()) == topic_id.encode():
            start_offset, _, text = _bytes(message.value()).decode().partition(" ")
            marks[partition] = (int(start_offset or 0), text)
    return marks


def is_mark_topic_there(connection: Connection) -> bool:
    from confluent_kafka import KafkaException

    from penstock.consumer.made_topics import replicas_of

    try:
        return replicas_of(connection.admin(), MARK_TOPIC, timeout_s=TIMEOUT_S) is not None
    except KafkaException as error:
        raise translated(error) from None


def _bytes(data: Any) -> bytes:
    return data or b""
