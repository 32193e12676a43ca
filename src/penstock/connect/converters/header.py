"""SimpleHeaderConverter: headers as text, of which the type is guessed when they are read. Kafka's default for headers."""

from __future__ import annotations

from penstock.connect.data.parsing import parse_text
from penstock.connect.data.schema import BYTES
from penstock.connect.data.text import text_of
from penstock.connect.errors import DataError
from penstock.connect.interface import HeaderConverter
from penstock.connect.records import Header


class SimpleHeaderConverter(HeaderConverter):
    java_names = ("org.apache.kafka.connect.storage.SimpleHeaderConverter",)

    def from_header(self, topic: str, header: Header) -> bytes | None:
        text = text_of(header.schema, header.value)
        return None if text is None else text.encode("utf-8", "replace")

    def to_header(self, topic: str, name: str, data: bytes | None) -> Header:
        """What cannot be read at all stays bytes."""
        if data is None:
            return Header(name, None, None)
        try:
            found = parse_text(data.decode("utf-8", "replace"))
        except DataError:
            return Header(name, data, BYTES)
        return Header(name, found.value, found.schema)
