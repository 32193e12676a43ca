"""Fills a topic with JSON objects of 100 bytes, each another, to be searched."""

from bench.clients.filling import fill

VALUE_BYTES = 100


def order_value(number: int) -> bytes:
    """`{"order": {"id": 7, "total": 7.25, "paid": true}, "item": "bio-impedance meter", "note": "…"}`, filled up to 100 bytes."""
    paid = "true" if number % 2 == 0 else "false"
    text = f'{{"order": {{"id": {number}, "total": {number % 1000}.25, "paid": {paid}}}, "item": "meter {number:08}", "note": "'
    return (text + "x" * (VALUE_BYTES - len(text) - 2) + '"}').encode()


def main() -> None:
    fill(lambda numbers: map(order_value, numbers), **{"linger.ms": 20})


if __name__ == "__main__":
    main()
