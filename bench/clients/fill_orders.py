"""Fills a topic with JSON objects of 100 bytes, each another, to be searched."""

from confluent_kafka import Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120
VALUE_BYTES = 100


def order_value(number: int) -> bytes:
    """`{"order": {"id": 7, "total": 7.25, "paid": true}, "item": "bio-impedance meter", "note": "…"}`, filled up to 100 bytes."""
    paid = "true" if number % 2 == 0 else "false"
    text = f'{{"order": {{"id": {number}, "total": {number % 1000}.25, "paid": {paid}}}, "item": "meter {number:08}", "note": "'
    return (text + "x" * (VALUE_BYTES - len(text) - 2) + '"}').encode()


def main() -> None:
    options = read_options()
    producer = Producer(
        {"bootstrap.servers": options["bootstrap"], "queue.buffering.max.messages": 500_000, "linger.ms": 20}
    )
    failed = 0
    for start in range(0, options["record_count"], 100_000):
        numbers = range(start, min(start + 100_000, options["record_count"]))
        messages = [{"value": order_value(number)} for number in numbers]
        for partition in range(options["partition_count"]):
            own = messages[partition :: options["partition_count"]]
            failed += len(own) - producer.produce_batch(options["topic"], own, partition=partition)
        failed += producer.flush(FLUSH_TIMEOUT_S)
    if failed:
        raise SystemExit(f"{failed} records were not acknowledged")
    print_result(record_count=options["record_count"])


if __name__ == "__main__":
    main()
