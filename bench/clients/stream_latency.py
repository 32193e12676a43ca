"""Records into some topics at a fixed rate, and out of the topics that others write them to: how long that takes.

From the moment a record is given to the producer until this process has it from the consumer, whose group nobody else
is in. What is written before every target has shown something, and for `warm_up_s` after that, is not counted.
"""

import re
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.clients.options import print_result, read_options
from bench.measure import percentile
from bench.spark import tree_cpu_seconds

STALL_TIMEOUT_S = 120
RECORD_BYTES = 100
TIME = re.compile(rb"[0-9]{20}")


def time_in(value: bytes) -> int:
    """What Feed has put into a value, wherever a plan has left it."""
    found = TIME.search(value)
    if found is None:
        raise SystemExit(f"a value without its time: {value!r}")
    return int(found[0])


class Feed(threading.Thread):
    """Keeps to its schedule whatever happens behind it: a stall is counted in every record that was due in it."""

    def __init__(self, bootstrap: str, topics: list[str], rate: float) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
        self._topics = topics
        self._interval_s = 1 / (rate * len(topics))
        self._is_over = threading.Event()
        self.produced_ns: list[int] = []

    def run(self) -> None:
        began, number = time.perf_counter(), 0
        while not self._is_over.wait(max(0.0, began + number * self._interval_s - time.perf_counter())):
            topic = self._topics[number % len(self._topics)]
            now_ns = time.perf_counter_ns()
            value = f"{now_ns:020} ".encode().ljust(RECORD_BYTES, b".")
            self._producer.produce(topic, value, key=str(number))  # another for each
            self.produced_ns.append(now_ns)
            self._producer.poll(0)
            number += 1
        self._producer.flush(STALL_TIMEOUT_S)

    def end(self) -> None:
        self._is_over.set()
        self.join(STALL_TIMEOUT_S)


class Arrivals:
    """By the time a record was produced, in nanoseconds: how long it took. The first time counts."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench-stream-latency"})
        places = [
            TopicPartition(topic, index, OFFSET_BEGINNING)
            for topic in topics
            for index in self._consumer.list_topics(topic, timeout=30).topics[topic].partitions
        ]
        self._consumer.assign(places)
        self.silent = set(topics)
        self.latencies_ns: dict[int, int] = {}

    def wait(self) -> None:
        message = self._consumer.poll(STALL_TIMEOUT_S)
        now_ns = time.perf_counter_ns()
        if message is None or message.error() or (value := message.value()) is None:
            raise SystemExit(f"nothing arrives any more: {message and message.error()}")
        produced_ns = time_in(value)
        self.latencies_ns.setdefault(produced_ns, now_ns - produced_ns)
        self.silent.discard(message.topic() or "")

    def close(self) -> None:
        self._consumer.close()


def main() -> None:
    options = read_options()
    bootstrap, topics = options["bootstrap"], options["topics"]
    arrivals = Arrivals(bootstrap, [target for _, target in topics])
    feed = Feed(bootstrap, [source for source, _ in topics], options["rate"])
    feed.start()
    while arrivals.silent:
        arrivals.wait()
    begin_ns = time.perf_counter_ns() + int(options["warm_up_s"] * 1e9)
    end_ns = begin_ns + int(options["seconds"] * 1e9)
    while time.perf_counter_ns() < begin_ns:
        arrivals.wait()
    cpu_before_s = tree_cpu_seconds(options["spark_pid"])
    while time.perf_counter_ns() < end_ns:
        arrivals.wait()
    spark_cpu_s = tree_cpu_seconds(options["spark_pid"]) - cpu_before_s
    wanted = {produced_ns for produced_ns in feed.produced_ns if begin_ns <= produced_ns < end_ns}
    while not wanted <= arrivals.latencies_ns.keys():  # fed on, as before
        arrivals.wait()
    feed.end()
    arrivals.close()
    latencies = sorted(arrivals.latencies_ns[produced_ns] / 1e6 for produced_ns in wanted)
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        record_count=len(latencies),
        spark_cpu_s=spark_cpu_s,
    )


if __name__ == "__main__":
    main()
