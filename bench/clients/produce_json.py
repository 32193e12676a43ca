"""Fills a topic with small JSON objects of about 80 bytes, each another."""

from bench.clients.filling import fill


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
    fill(lambda numbers: map(json_value, numbers))


if __name__ == "__main__":
    main()
