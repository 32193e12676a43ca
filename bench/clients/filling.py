"""Fills a topic with values that are made as they go: what the clients that fill topics share."""

from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120
VALUES_AT_ONCE = 100_000


def fill(values: Callable[[range], Iterable[bytes]], **settings: Any) -> None:
    """By the options of this process; `settings` are the producer's own. Says how many records there are now."""
    options = read_options()
    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            "acks": "all",
            "queue.buffering.max.messages": 500_000,
            **settings,
        }
    )
    failed = 0
    for start in range(0, options["record_count"], VALUES_AT_ONCE):
        numbers = range(start, min(start + VALUES_AT_ONCE, options["record_count"]))
        messages = [{"value": value} for value in values(numbers)]
        # A partition of its own for each call: the topic's partitions fill evenly.
        for partition in range(options["partition_count"]):
            own = messages[partition :: options["partition_count"]]
            failed += len(own) - producer.produce_batch(options["topic"], own, partition=partition)
        failed += producer.flush(FLUSH_TIMEOUT_S)
    if failed:
        raise SystemExit(f"{failed} records were not acknowledged")
    print_result(record_count=options["record_count"])
