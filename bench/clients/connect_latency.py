"""Reads what a paced source writes, and how long each record took from when it was due.

What comes within `warm_up_s` of the first record is not counted.
"""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.clients.options import print_result, read_options
from bench.clients.stream_latency import STALL_TIMEOUT_S, time_in
from bench.measure import percentile
from bench.spark import tree_cpu_seconds


def main() -> None:
    options = read_options()
    consumer = Consumer({"bootstrap.servers": options["bootstrap"], "group.id": "bench-connect-latency"})
    consumer.assign([TopicPartition(options["topic"], 0, OFFSET_BEGINNING)])
    begin_ns = end_ns = 0
    cpu_before_s = 0.0
    latencies: list[float] = []
    while True:
        message = consumer.poll(STALL_TIMEOUT_S)
        now_ns = time.perf_counter_ns()
        if message is None or message.error() or (value := message.value()) is None:
            raise SystemExit(f"nothing arrives any more: {message and message.error()}")
        if not begin_ns:
            begin_ns = now_ns + int(options["warm_up_s"] * 1e9)
            end_ns = begin_ns + int(options["seconds"] * 1e9)
        due_ns = time_in(value)
        if due_ns >= end_ns:
            break
        if due_ns >= begin_ns:
            cpu_before_s = cpu_before_s or tree_cpu_seconds(options["pid"])
            latencies.append((now_ns - due_ns) / 1e6)
    cpu_s = tree_cpu_seconds(options["pid"]) - cpu_before_s
    consumer.close()
    latencies.sort()
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        record_count=len(latencies),
        cpu_seconds=cpu_s,
    )


if __name__ == "__main__":
    main()
