"""Fills the topics of a plan: a stream of texts of 100 bytes over `key_count` keys, or a table.

Every second text of the stream ends with '!'.
"""

from collections.abc import Iterator

from confluent_kafka import Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120
RECORD_BYTES = 100


def key_of(number: int, key_count: int) -> str:
    return f"k{number * 7919 % key_count}"


def value_of(number: int) -> str:
    """value_of(1) is '00000000000000000001 …!', 100 bytes long."""
    return f"{number:020} ".ljust(RECORD_BYTES - 1, ".") + ".!"[number % 2]


def stream_records(count: int, key_count: int) -> Iterator[tuple[str, str]]:
    return ((key_of(number, key_count), value_of(number)) for number in range(count))


def table_records(key_count: int) -> Iterator[tuple[str, str]]:
    return ((f"k{number}", f"name-{number}") for number in range(key_count))


def main() -> None:
    options = read_options()
    key_count = options["key_count"]
    if options["is_table"]:
        records = table_records(key_count)
    else:
        records = stream_records(options["record_count"], key_count)
    settings = {"acks": "all", "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({"bootstrap.servers": options["bootstrap"], **settings})
    for key, value in records:
        while True:
            try:
                producer.produce(options["topic"], value, key)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(FLUSH_TIMEOUT_S):
        raise SystemExit(f"{left} records were not acknowledged")
    print_result(is_filled=1)


if __name__ == "__main__":
    main()
