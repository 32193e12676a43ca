"""From produce() to the consumer's hands, at a fixed rate; confluent-kafka on both sides, linger 0.

Producer and consumer share this process and so its clock. The producing thread keeps to its schedule whatever
the server does, so a stall is counted in every record that was due during it.
"""

import threading
import time

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bench.clients.options import print_result, read_options
from bench.measure import percentile

STALL_TIMEOUT_S = 30
RECORD_BYTES = 100


def produce_on_schedule(producer: Producer, topic: str, *, rate: int, record_count: int) -> None:
    began = time.perf_counter()
    for number in range(record_count):
        due = began + number / rate
        if (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        value = str(time.perf_counter_ns()).encode().ljust(RECORD_BYTES)
        producer.produce(topic, value)
        producer.poll(0)
    producer.flush(STALL_TIMEOUT_S)


def main() -> None:
    options = read_options()
    bootstrap, topic, rate = options["bootstrap"], options["topic"], options["rate"]
    skipped = int(options["warm_up_s"] * rate)
    record_count = skipped + int(options["seconds"] * rate)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench-latency", "enable.auto.commit": False}
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, OFFSET_END) for index in partitions])
    # A first record shows that the consumer has found the end and waits there; until then none is counted.
    deadline = time.perf_counter() + STALL_TIMEOUT_S
    while consumer.poll(0.1) is None:
        if time.perf_counter() > deadline:
            raise SystemExit("the consumer did not start")
        producer.produce(topic, b"0")
        producer.poll(0)
    producer.flush(STALL_TIMEOUT_S)
    work = {"rate": rate, "record_count": record_count}
    thread = threading.Thread(target=produce_on_schedule, args=(producer, topic), kwargs=work, daemon=True)
    thread.start()
    latencies: list[float] = []
    seen = 0
    while seen < record_count:
        message = consumer.poll(STALL_TIMEOUT_S)
        now = time.perf_counter_ns()
        if message is None or message.error():
            raise SystemExit(f"after {seen} of {record_count} records: {message and message.error()}")
        value = message.value()
        if value is None or len(value) < RECORD_BYTES:
            continue
        seen += 1
        if seen > skipped:
            latencies.append((now - int(value)) / 1e6)
    thread.join(STALL_TIMEOUT_S)
    consumer.close()
    latencies.sort()
    print_result(
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        p999_ms=percentile(latencies, 0.999),
        record_count=len(latencies),
    )


if __name__ == "__main__":
    main()
