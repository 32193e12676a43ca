"""Produces or consumes for some seconds, as fast as a quota lets it; confluent-kafka.

Bytes are of values. librdkafka itself counts disconnects, and errors that it tells are counted too.
"""

import json
import time
import uuid

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


def produce(options: dict[str, object], topic: str, *, seconds: float, record_bytes: int) -> float:
    """Bytes that were acknowledged in that time."""
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
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            producer.produce(topic, value)
            producer.poll(0)
        except BufferError:
            producer.poll(0.01)
    counted = acknowledged
    producer.flush(60)
    if failures:
        raise SystemExit(f"{len(failures)} records failed: {failures[0]}")
    return counted


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
    if given["part"] == "produce":
        done = produce(options, given["topic"], seconds=given["seconds"], record_bytes=given["record_bytes"])
    else:
        done = consume(options, given["topic"], seconds=given["seconds"])
    print_result(bytes=done, disconnects=heard.disconnects, errors=len(heard.errors))


if __name__ == "__main__":
    main()
