"""Fills a topic with small JSON objects of about 80 bytes, each another."""

from confluent_kafka import Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120


def json_value(number: int) -> bytes:
    """json_value(7) is b'{"id": 7, "item": "bio-impedance meter 0000007", "price": 7.25, "paid": false}'."""
    paid = "true" if number % 2 == 0 else "false"
    text = f'{{"id": {number}, "item": "bio-impedance meter {number:07}", "price": {number % 1000}.25, "paid": {paid}}}'
    return text.encode()


def json_checksum(record_count: int) -> int:
    """What a reader has to find in all of them: numbers, lengths of items, prices (rounded down at last) and paid ones."""
    prices = sum(number % 1000 for number in range(record_count)) + 0.25 * record_count
    item_bytes = len("bio-impedance meter 0000000")
    return sum(range(record_count)) + item_bytes * record_count + int(prices) + (record_count + 1) // 2


def main() -> None:
    options = read_options()
    producer = Producer(
        {"bootstrap.servers": options["bootstrap"], "acks": "all", "queue.buffering.max.messages": 500_000}
    )
    failed = 0
    for start in range(0, options["record_count"], 100_000):
        numbers = range(start, min(start + 100_000, options["record_count"]))
        messages = [{"value": json_value(number)} for number in numbers]
        # A partition of its own for each call: the topic's partitions fill evenly.
        for partition in range(options["partition_count"]):
            own = messages[partition :: options["partition_count"]]
            failed += len(own) - producer.produce_batch(options["topic"], own, partition=partition)
        failed += producer.flush(FLUSH_TIMEOUT_S)
    if failed:
        raise SystemExit(f"{failed} records were not acknowledged")
    print_result(record_count=options["record_count"])


if __name__ == "__main__":
    main()
