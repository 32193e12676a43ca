"""A producer and a group of one (confluent-kafka, its defaults but acks=all) until standard input ends; counts what went wrong.

An error is what a program would see: a delivery that failed, an error in place of a record, a commit that failed. What the
library mends by itself (a lost connection, a leader that moved) is none.
"""

import select
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench.clients.options import print_result, read_options

DRAIN_TIMEOUT_S = 60
VALUE = bytes(range(100))


class Counts:
    def __init__(self) -> None:
        self.sent = self.acknowledged = self.consumed = 0
        self.errors: list[str] = []
        self.slowest_s = 0.0


def consume(options: dict[str, str], counts: Counts, ends: threading.Event) -> None:
    def committed(error: KafkaError | None, _: list[TopicPartition]) -> None:
        if error is not None:
            counts.errors.append(f"commit: {error}")

    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": "steady-load",
            "auto.offset.reset": "earliest",
            "on_commit": committed,
        }
    )
    consumer.subscribe([options["topic"]])
    while not ends.is_set():
        try:
            messages = consumer.consume(1000, timeout=0.2)
        except KafkaException as error:
            counts.errors.append(f"consume: {error}")
            continue
        for message in messages:
            if (refused := message.error()) is not None:
                counts.errors.append(f"consume: {refused}")
            else:
                counts.consumed += 1
    consumer.close()


def produce(options: dict[str, str], counts: Counts) -> None:
    producer = Producer({"bootstrap.servers": options["bootstrap"], "acks": "all"})
    rate, began = int(options["rate"]), time.perf_counter()

    def send() -> None:
        sent_at = time.perf_counter()

        def delivered(error: KafkaError | None, _: Message) -> None:
            counts.slowest_s = max(counts.slowest_s, time.perf_counter() - sent_at)
            if error is None:
                counts.acknowledged += 1
            else:
                counts.errors.append(f"produce: {error}")

        producer.produce(options["topic"], VALUE, on_delivery=delivered)

    while not select.select([sys.stdin], [], [], 0)[0]:
        due = int((time.perf_counter() - began) * rate)
        while counts.sent < due:
            try:
                send()
            except BufferError:
                break  # full: the broker is behind, and this producer with it
            counts.sent += 1
        producer.poll(0.01)
    if left := producer.flush(DRAIN_TIMEOUT_S):
        counts.errors.append(f"produce: {left} records were not acknowledged")


def main() -> None:
    options, counts, ends = read_options(), Counts(), threading.Event()
    consumer = threading.Thread(target=consume, args=(options, counts, ends), daemon=True)
    consumer.start()
    produce(options, counts)
    deadline = time.monotonic() + DRAIN_TIMEOUT_S
    while counts.consumed < counts.acknowledged and time.monotonic() < deadline:
        time.sleep(0.05)
    ends.set()
    consumer.join(DRAIN_TIMEOUT_S)
    for error in counts.errors[:10]:
        print(error, file=sys.stderr)
    print_result(
        errors=len(counts.errors),
        sent=counts.sent,
        acknowledged=counts.acknowledged,
        consumed=counts.consumed,
        missing=max(0, counts.acknowledged - counts.consumed),
        slowest_ms=counts.slowest_s * 1000,
    )


if __name__ == "__main__":
    main()
