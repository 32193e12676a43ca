"""A producer (confluent-kafka, linger 0) with so many records a second, whatever the server does.

A latency is from when a record was due until its delivery report is seen, so a stall counts in every record that was due
during it. Reports are waited for on a thread of their own: polling between two records would keep a core busy, since
librdkafka rounds a wait of less than a millisecond down to none, and on two cores the server would pay for that.
"""

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

from bench.clients.options import print_result, read_options
from bench.measure import percentile

FLUSH_TIMEOUT_S = 60
VALUE = bytes(range(100))


def main() -> None:
    options = read_options()
    rate, topic = options["rate"], options["topic"]
    skipped = int(options["warm_up_s"] * rate)
    record_count = skipped + int(options["seconds"] * rate)
    clock = time.perf_counter
    latencies: list[float] = []
    given = options.get("client", {})
    producer = Producer({"bootstrap.servers": options["bootstrap"], "acks": "all", "linger.ms": 0, **given})
    producer.list_topics(topic, timeout=30)
    began = clock() + 0.1

    def send(number: int) -> None:
        due = began + number / rate

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                raise SystemExit(f"not acknowledged: {error}")
            if number >= skipped:
                latencies.append((clock() - due) * 1000)

        if (wait := due - clock()) > 0:
            time.sleep(wait)
        producer.produce(topic, VALUE, on_delivery=on_delivery)

    ended = threading.Event()

    def hear_reports() -> None:
        while not ended.is_set():
            producer.poll(0.1)

    hearing = threading.Thread(target=hear_reports)
    hearing.start()
    for number in range(record_count):
        send(number)
    ended.set()
    hearing.join()
    if left := producer.flush(FLUSH_TIMEOUT_S):
        raise SystemExit(f"{left} records were not acknowledged")
    latencies.sort()
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        p999_ms=percentile(latencies, 0.999),
        record_count=len(latencies),
    )


if __name__ == "__main__":
    main()
