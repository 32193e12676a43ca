"""Producers (confluent-kafka, linger 0) that wait for each record's acknowledgement before the next.

Each has a thread and a connection of its own. A latency is from produce() until its delivery report is seen.
"""

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

from bench.clients.options import print_result, read_options
from bench.measure import percentile

ACK_TIMEOUT_S = 30
VALUE = bytes(range(100))


class SynchronousProducer:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
        self._topic = topic
        self._acknowledged = False
        self.latencies_ms: list[float] = []

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            raise SystemExit(f"not acknowledged: {error}")
        self._acknowledged = True

    def run(self, *, warm_until: float, until: float) -> None:
        while (began := time.perf_counter()) < until:
            self._acknowledged = False
            self._producer.produce(self._topic, VALUE, on_delivery=self._on_delivery)
            while not self._acknowledged:
                if time.perf_counter() - began > ACK_TIMEOUT_S:
                    raise SystemExit(f"no acknowledgement within {ACK_TIMEOUT_S} s")
                self._producer.poll(1.0)
            if began >= warm_until:
                self.latencies_ms.append((time.perf_counter() - began) * 1000)


def main() -> None:
    options = read_options()
    count = options["producer_count"]
    producers = [SynchronousProducer(options["bootstrap"], options["topic"]) for _ in range(count)]
    now = time.perf_counter()
    times = {
        "warm_until": now + options["warm_up_s"],
        "until": now + options["warm_up_s"] + options["seconds"],
    }
    threads = [threading.Thread(target=each.run, kwargs=times) for each in producers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies = sorted(latency for each in producers for latency in each.latencies_ms)
    if not all(each.latencies_ms for each in producers):
        raise SystemExit("a producer got no acknowledgement")
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        request_count=len(latencies),
        requests_per_s=len(latencies) / options["seconds"],
    )


if __name__ == "__main__":
    main()
