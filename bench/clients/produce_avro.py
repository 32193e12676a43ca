"""Fills a topic with orders in Avro."""

from confluent_kafka import Producer

from bench.clients.avro_orders import encoded
from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120


def main() -> None:
    options = read_options()
    producer = Producer(
        {"bootstrap.servers": options["bootstrap"], "acks": "all", "queue.buffering.max.messages": 500_000}
    )
    failed = 0
    for start in range(0, options["record_count"], 100_000):
        values = encoded(range(start, min(start + 100_000, options["record_count"])))
        messages = [{"value": value} for value in values]
        for partition in range(options["partition_count"]):
            own = messages[partition :: options["partition_count"]]
            failed += len(own) - producer.produce_batch(options["topic"], own, partition=partition)
        failed += producer.flush(FLUSH_TIMEOUT_S)
    if failed:
        raise SystemExit(f"{failed} records were not acknowledged")
    print_result(record_count=options["record_count"])


if __name__ == "__main__":
    main()
