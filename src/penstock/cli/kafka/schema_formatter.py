"""Confluent's formatters of the console consumer: keys and values by the schemas of a registry, as JSON."""

from __future__ import annotations

from typing import Any, Final

from penstock.cli.kafka.formatters import BadData, DefaultFormatter
from penstock.client.json_lines import DEFAULT_URL, JsonReader, json_line
from penstock.client.line_reader import is_true
from penstock.client.schema_registry import SchemaRegistry
from penstock.schemas.framing import unframed
from penstock.schemas.model import AVRO, JSON, PROTOBUF, InvalidValue

FORMATTERS: Final = {
    "AvroMessageFormatter": AVRO,
    "JsonSchemaMessageFormatter": JSON,
    "ProtobufMessageFormatter": PROTOBUF,
}
"""By the last part of the class name."""


class SchemaFormatter(DefaultFormatter):
    """The columns are those of Kafka's formatter; with `print.schema.ids` the id of its schema is behind each part."""

    def __init__(self, properties: dict[str, str], kind: str) -> None:
        super().__init__(properties)
        registry = SchemaRegistry(properties.get("schema.registry.url") or DEFAULT_URL, properties)
        self._reader = JsonReader(
            registry, kind, original_names=is_true(properties.get("preserve.json.field.name"))
        )
        self._has_ids = is_true(properties.get("print.schema.ids"))
        self._id_separator = properties.get("schema.id.separator", "\t").encode()
        self.headers_separator = properties.get(
            "headers.separator", "\n"
        ).encode()  # Confluent's, not Kafka's
        self.key_deserializer = self.key_deserializer or self._read
        self.value_deserializer = self.value_deserializer or self._read

    def format(self, record: Any) -> bytes:
        try:
            return super().format(record)
        except InvalidValue as error:
            place = f"{record.topic()}-{record.partition()}@{record.offset()}"
            raise BadData(f"Error processing message at {place}: {error}") from None

    def _read(self, data: bytes) -> bytes:
        text = json_line(self._reader.read(data))
        if not self._has_ids:
            return text
        return text + self._id_separator + str(unframed(data).schema).encode()
