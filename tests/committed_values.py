"""What a reader of committed records finds in a topic, once the transactions there are ended."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import Consumer, KafkaError, TopicPartition

ANSWER_S = 30.0


class OpenTransaction(Exception):
    """Something is still hidden behind a transaction that nobody ends."""


def committed_values(bootstrap: str, topic: str, *, patience_s: float) -> Counter[str]:
    """Also of transactions that are decided and whose markers are on their way; OpenTransaction after `patience_s`."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "reads-committed", "isolation.level": "read_committed",
        "enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 10,
    }  # fmt: skip
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
        places = [TopicPartition(topic, partition, 0) for partition in partitions]
        ends = {
            place.partition: consumer.get_watermark_offsets(place, timeout=ANSWER_S)[1] for place in places
        }
        consumer.assign(places)
        found: Counter[str] = Counter()
        deadline_s = time.monotonic() + patience_s
        while ends:
            if time.monotonic() > deadline_s:
                raise OpenTransaction(f"{topic} cannot be read to its end: {ends}")
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[(message.value() or b"").decode()] += 1
            elif error.code() != KafkaError._PARTITION_EOF:
                raise AssertionError(error)
            elif (message.offset() or 0) >= ends.get(message.partition() or 0, 0):
                ends.pop(message.partition() or 0, None)
        return found
    finally:
        consumer.close()
