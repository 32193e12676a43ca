"""librdkafka (confluent-kafka) produces as fast as it can; its defaults, but for acks and the queue's size.

From the first produce() to the last acknowledgement.
"""

import os
import time

from confluent_kafka import KafkaError, Message, Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120
DISTINCT_VALUES = 64  # hex digits of random bytes


def main() -> None:
    options = read_options()
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            **options.get("client", {}),
            "acks": "all",
            "compression.type": options.get("compression", "none"),
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 131_072,
            "delivery.report.only.error": True,
            "on_delivery": on_delivery,
        }
    )
    topic, record_bytes = options["topic"], options["record_bytes"]
    values = [os.urandom(record_bytes // 2).hex().encode() for _ in range(DISTINCT_VALUES)]
    producer.list_topics(topic, timeout=30)
    produce, poll = producer.produce, producer.poll
    began = time.perf_counter()
    for number in range(options["record_count"]):
        value = values[number % DISTINCT_VALUES]
        while True:
            try:
                produce(topic, value)
                break
            except BufferError:
                poll(0.01)
    left = producer.flush(FLUSH_TIMEOUT_S)
    seconds = time.perf_counter() - began
    if left or failures:
        raise SystemExit(f"{left} records were not acknowledged, {len(failures)} failed: {failures[:1]}")
    print_result(seconds=seconds)


if __name__ == "__main__":
    main()
