"""Waits for the first record of a topic and says when it came, by the clock that all processes of a machine share."""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.clients.options import print_result, read_options

TIMEOUT_S = 120


def main() -> None:
    options = read_options()
    consumer = Consumer({"bootstrap.servers": options["bootstrap"], "group.id": "bench-first-arrival"})
    consumer.assign([TopicPartition(options["topic"], 0, OFFSET_BEGINNING)])
    message = consumer.poll(TIMEOUT_S)
    arrived_s = time.monotonic()
    if message is None or message.error():
        raise SystemExit(f"nothing arrived: {message and message.error()}")
    consumer.close()
    print_result(monotonic_s=arrived_s)


if __name__ == "__main__":
    main()
