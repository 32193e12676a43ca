"""Watches a topic fill, until it has `expected` records, and the CPU time of the program that fills it.

Says when it looks; the program may start then. Counted is from the moment the first `skipped` of them are there:
what came before warmed the program up.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.clients.options import print_result, read_options
from bench.spark import tree_cpu_seconds

LOOK_S = 0.04
STALL_TIMEOUT_S = 60.0


class Moment(NamedTuple):
    at_s: float
    records: int
    cpu_s: float


def watch(look: Callable[[], Moment], skipped: int, expected: int) -> tuple[Moment, Moment]:
    """The first moment with at least `skipped` records, and the first with all. SystemExit where nothing comes any more."""
    first = last = look()
    begun = None
    while True:
        now = look()
        if begun is None and now.records >= skipped:
            begun = now
        if begun is not None and now.records >= expected:
            return begun, now
        if now.records > last.records:
            last = now
        elif now.at_s - last.at_s > STALL_TIMEOUT_S:
            raise SystemExit(f"{now.records} of {expected} records came, and no more (began with {first})")
        time.sleep(LOOK_S)


def main() -> None:
    options = read_options()
    topic, pid = options["topic"], options["pid"]
    consumer = Consumer({"bootstrap.servers": options["bootstrap"], "group.id": "bench-stream-drain"})
    places = [
        TopicPartition(topic, index)
        for index in consumer.list_topics(topic, timeout=30).topics[topic].partitions
    ]

    def look() -> Moment:
        records = sum(consumer.get_watermark_offsets(each, timeout=30)[1] for each in places)
        return Moment(time.perf_counter(), records, tree_cpu_seconds(pid))

    look()
    print_result(is_looking=1)
    begun, ended = watch(look, options["skipped"], options["expected"])
    consumer.close()
    print_result(
        seconds=ended.at_s - begun.at_s,
        records=ended.records - begun.records,
        cpu_seconds=ended.cpu_s - begun.cpu_s,
    )


if __name__ == "__main__":
    main()
