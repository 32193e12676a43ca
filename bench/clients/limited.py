"""Produces or consumes for some seconds, as fast as a quota lets it; confluent-kafka.

Bytes are of values. A producer has a warm-up first, in which it spends the burst that a quota allows. librdkafka itself counts
disconnects, and errors that it tells are counted too.
"""

import json
import time
import uuid
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from bench.clients.options import print_result, read_options

STATISTICS_MS = 500


class Heard:
    def __init__(self) -> None:
        self.errors: list[str] = []
        self.disconnects = 0

    def options(self) -> dict[str, object]:
        return {
            "error_cb": lambda error: self.errors.append(str(error)),
            "stats_cb": self._statistics,
            "statistics.interval.ms": STATISTICS_MS,
        }

    def _statistics(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self.disconnects = sum(broker.get("disconnects", 0) for broker in brokers)


class Produced(NamedTuple):
    """Bytes that were acknowledged."""

    steady: int
    """In the counted seconds, behind the warm-up."""
    with_burst: int
    """In as many seconds from the first record on: a quota's windows let who was quiet take the quota of all of them at once."""


def produce(
    options: dict[str, object], topic: str, *, warm_up_s: float, seconds: float, record_bytes: int
) -> Produced:
    acknowledged = 0
    failures: list[KafkaError] = []
    value = b"v" * record_bytes

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged
        if error is not None:
            failures.append(error)
        acknowledged += record_bytes

    # A quota makes records wait: what the queue holds must be sent before its time is over.
    producer = Producer(
        {**options, "acks": "all", "queue.buffering.max.kbytes": 8192, "on_delivery": on_delivery}
    )
    producer.list_topics(topic, timeout=30)
    began = time.perf_counter()
    at: list[int] = []
    for moment in sorted((warm_up_s, seconds, warm_up_s + seconds)):
        while time.perf_counter() < began + moment:
            try:
                producer.produce(topic, value)
                producer.poll(0)
            except BufferError:
                producer.poll(0.01)
        at.append(acknowledged)
    producer.flush(60)
    if failures:
        raise SystemExit(f"{len(failures)} records failed: {failures[0]}")
    warm, first, last = at if warm_up_s <= seconds else (at[1], at[0], at[2])
    return Produced(steady=last - warm, with_burst=first)


def consume(options: dict[str, object], topic: str, *, seconds: float) -> float:
    consumer = Consumer({**options, "group.id": f"bench-{uuid.uuid4()}", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    end = time.perf_counter() + seconds
    seen = 0
    while (left := end - time.perf_counter()) > 0:
        seen += sum(len(message.value() or b"") for message in consumer.consume(1000, min(left, 0.1)))
    consumer.close()
    return seen


def main() -> None:
    given = read_options()
    heard = Heard()
    options = {**given["client"], **heard.options()}
    done: dict[str, float]
    if given["part"] == "produce":
        produced = produce(
            options,
            given["topic"],
            warm_up_s=given["warm_up_s"],
            seconds=given["seconds"],
            record_bytes=given["record_bytes"],
        )
        done = {"bytes": produced.steady, "bytes_with_burst": produced.with_burst}
    else:
        done = {"bytes": consume(options, given["topic"], seconds=given["seconds"])}
    print_result(**done, disconnects=heard.disconnects, errors=len(heard.errors))


if __name__ == "__main__":
    main()
