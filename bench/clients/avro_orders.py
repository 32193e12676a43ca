"""Orders in Avro, ten fields and 120 bytes each with the schema's id; and a registry that knows their schema only."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SCHEMA_ID = 1
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "item", "type": "string"},
        {"name": "count", "type": "int"},
        {"name": "price", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "shop", "type": "string"},
        {"name": "discount", "type": ["null", "double"], "default": None},
    ],
}
SCHEMA_TEXT = json.dumps(SCHEMA)
TYPE = (
    "id long, customer string, item string, count int, price double, paid boolean, at timestamp, note string, "
    "shop string, discount double"
)
FRAME = b"\0" + SCHEMA_ID.to_bytes(4, "big")
# The same rows, as Spark makes them.
EXPRESSION = (
    "named_struct('id', id, 'customer', format_string('customer %08d', id % 100000), 'item', "
    "format_string('bio-impedance meter, model %08d, with its own bag', id), 'count', "
    "cast(id % 17 as int), 'price', id % 1000 + 0.25d, "
    "'paid', id % 2 = 0, 'at', timestamp_micros(1700000000000000 + id), 'note', "
    "if(id % 3 = 0, 'leave it at the door, please', null), 'shop', format_string('shop %03d', id % 500), 'discount', "
    "if(id % 5 = 0, 0.1d, null))"
)
SUM = "sum(value.id) + sum(length(value.item)) + cast(sum(value.price) as long) + count_if(value.paid)"


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"customer {number % 100_000:08}",
        "item": f"bio-impedance meter, model {number:08}, with its own bag",
        "count": number % 17,
        "price": number % 1000 + 0.25,
        "paid": number % 2 == 0,
        "at": 1_700_000_000_000_000 + number,
        "note": "leave it at the door, please" if number % 3 == 0 else None,
        "shop": f"shop {number % 500:03}",
        "discount": 0.1 if number % 5 == 0 else None,
    }


def encoded(numbers: range) -> list[bytes]:
    import fastavro

    parsed = fastavro.parse_schema(SCHEMA)
    found = []
    for number in numbers:
        out = io.BytesIO()
        out.write(FRAME)
        fastavro.schemaless_writer(out, parsed, order(number))
        found.append(out.getvalue())
    return found


def checksum(record_count: int) -> int:
    """What a reader has to find in all of them."""
    prices = sum(number % 1000 for number in range(record_count)) + 0.25 * record_count
    item_bytes = len("bio-impedance meter, model 00000000, with its own bag")
    return sum(range(record_count)) + item_bytes * record_count + int(prices) + (record_count + 1) // 2


@contextmanager
def registry() -> Iterator[str]:
    """Its address. It answers every question with the one schema."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = {"subject": "orders", "version": 1, "id": SCHEMA_ID, "schema": SCHEMA_TEXT}
            data = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
