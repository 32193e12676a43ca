"""Fills a topic with orders in Avro."""

from bench.clients.avro_orders import encoded
from bench.clients.filling import fill


def main() -> None:
    fill(encoded)


if __name__ == "__main__":
    main()
