"""A transactional producer (confluent-kafka): begin, some records, commit, and again; one transaction at a time.

A duration is from begin_transaction() until commit_transaction() returns: all of its records and markers are written.
"""

import time

from confluent_kafka import KafkaError, Message, Producer

from bench.clients.options import print_result, read_options
from bench.measure import percentile

TIMEOUT_S = 30
VALUE = bytes(range(100))


def main() -> None:
    options = read_options()
    delivered = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        nonlocal delivered
        if error is not None:
            raise SystemExit(f"not acknowledged: {error}")
        delivered += 1

    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            "transactional.id": options["transactional_id"],
            "on_delivery": on_delivery,
            "log_level": 4,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    topic, record_count = options["topic"], options["records_per_transaction"]
    durations_ms: list[float] = []
    commit_count = 0
    warm_until = time.perf_counter() + options["warm_up_s"]
    until = warm_until + options["seconds"]
    while (began := time.perf_counter()) < until:
        producer.begin_transaction()
        for _ in range(record_count):
            producer.produce(topic, VALUE)
        producer.commit_transaction(TIMEOUT_S)
        commit_count += 1
        if began >= warm_until:
            durations_ms.append((time.perf_counter() - began) * 1000)
    if delivered != commit_count * record_count:
        raise SystemExit(f"{commit_count} transactions were committed with {delivered} records acknowledged")
    durations_ms.sort()
    print_result(
        commits_per_s=len(durations_ms) * 1000 / sum(durations_ms),
        commit_count=commit_count,
        p50_ms=percentile(durations_ms, 0.5),
        p99_ms=percentile(durations_ms, 0.99),
    )


if __name__ == "__main__":
    main()
