"""What has been replayed of a dead letter topic, kept where it stays.

The offsets of the group `penstock-dlq-replay` say it, and are read at once. But the cluster forgets offsets of a group without
members after `offsets.retention.minutes`, 7 days unless changed. So each transaction of a replay also writes a record to a
compacted topic, which keeps the last one of each partition:

    topic __penstock_dlq_replays: key "orders.dlq-0", value "17 replayed:…", header topic-id "nXr2…"

It is looked for where the group has no offset. That is also so when the dead letter topic was deleted and made again, and its id
tells that nothing of it has been replayed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.cli.clients import Connection, result, translated
from penstock.cli.failures import Refused, Unreachable

MARK_TOPIC = "__penstock_dlq_replays"
MARK_TOPIC_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(4 * 1024 * 1024)}
TOPIC_ID = "topic-id"
TIMEOUT_S = 30.0
POLL_S = 0.2


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

    from penstock.consumer.made_topics import make_internal_topic

    try:
        make_internal_topic(
            connection.admin(), MARK_TOPIC, partitions=1, settings=MARK_TOPIC_SETTINGS, timeout_s=TIMEOUT_S
        )
    except KafkaException as error:
        raise translated(error) from None


def topic_id_of(connection: Connection, topic: str) -> str:
    """Tells it from one of the same name that is made later."""
    from confluent_kafka import TopicCollection

    admin = connection.admin()  # held until the answer is here
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_S)
    return str(result(described[topic]).topic_id)


def read_marks(connection: Connection, topic: str, topic_id: str) -> Mapping[int, tuple[int, str]]:
    """Partition → (start offset, metadata), as the last replay wrote them; nothing where there was none."""
    import confluent_kafka
    from confluent_kafka import KafkaError, KafkaException

    consumer = connection.consumer(
        {
            "group.id": MARK_TOPIC, "enable.auto.commit": "false", "isolation.level": "read_committed",
            "enable.partition.eof": "true", "allow.auto.create.topics": "false", "client.id": "penstock-dlq",
        }
    )  # fmt: skip
    marks: dict[int, tuple[int, str]] = {}
    deadline_s = time.monotonic() + TIMEOUT_S
    try:
        if MARK_TOPIC not in consumer.list_topics(timeout=TIMEOUT_S).topics:
            return marks
        consumer.assign([confluent_kafka.TopicPartition(MARK_TOPIC, 0, confluent_kafka.OFFSET_BEGINNING)])
        while True:
            message: Any = consumer.poll(POLL_S)
            if time.monotonic() > deadline_s:
                raise Unreachable(f"{MARK_TOPIC} cannot be read to its end; try again.")
            if message is None:
                continue
            error = message.error()
            if error is None:
                name, _, partition = (message.key() or b"").decode().rpartition("-")
                if name == topic:
                    marks.pop(int(partition), None)
                    # Marks of earlier versions do not say which topic they mean.
                    if dict(message.headers() or ()).get(TOPIC_ID, topic_id.encode()) == topic_id.encode():
                        start_offset, _, metadata = (message.value() or b"0 ").decode().partition(" ")
                        marks[int(partition)] = (int(start_offset), metadata)
            elif error.code() == KafkaError._PARTITION_EOF:
                return marks
            elif not error.retriable():
                raise Refused(error.str(), code=error.code())
    except KafkaException as error:
        raise translated(error) from None
    finally:
        consumer.close()
