"""Confluent's readers of the console producer: lines of JSON become keys and values by schemas of a registry."""

from __future__ import annotations

import json
import struct
from typing import Final

from penstock.client.errors import UserError
from penstock.client.json_lines import DEFAULT_URL, JsonWriter
from penstock.client.line_reader import BadLine, LineReader, Record, is_true
from penstock.client.property_files import read_text
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import SchemaChoice
from penstock.schemas.model import AVRO, JSON, PROTOBUF, InvalidValue, SchemaReference
from penstock.schemas.subject_names import TOPIC_NAME

READERS: Final = {
    "AvroMessageReader": AVRO,
    "JsonSchemaMessageReader": JSON,
    "ProtobufMessageReader": PROTOBUF,
}
"""By the last part of the class name."""
_SERIALIZERS: Final = {"LongSerializer": ">q", "IntegerSerializer": ">i", "ShortSerializer": ">h"}


class BadValue(BadLine):
    """A line whose key or value does not fit its schema."""

    java_name = "org.apache.kafka.common.errors.SerializationException"


class SchemaLineReader(LineReader):
    """As Kafka's, and then each part is JSON. The registry is asked when the first line comes, but for schemas by id at once."""

    def __init__(self, properties: dict[str, str], topic: str, kind: str) -> None:
        super().__init__(properties)
        self._properties = properties
        self._kind = kind
        self._registry = SchemaRegistry(properties.get("schema.registry.url") or DEFAULT_URL, properties)
        self._topic = topic
        self._key_layout = self._layout()
        self._value = self._writer("value")
        self._key = self._writer("key") if self.parse_key and self._key_layout is None else None

    def read(self, line: str) -> Record:
        record = super().read(line)
        key = record.key
        if key is not None:
            key = self._written(self._key, "key", key) if self._key is not None else self._plain_key(key)
        value = None if record.value is None else self._written(self._value, "value", record.value)
        return Record(key, value, record.headers)

    def _written(self, writer: JsonWriter, part: str, data: bytes) -> bytes:
        try:
            return writer.write_text(data.decode())
        except UnicodeDecodeError:
            raise BadValue(f"The {part} on line number {self.line_number} is not UTF-8") from None
        except InvalidValue as error:
            raise BadValue(
                f"The {part} on line number {self.line_number} does not fit its schema: {error}"
            ) from None

    def _layout(self) -> str | None:
        """Of keys without a schema: that of a number, empty for a text; None where keys have a schema."""
        class_name = self._properties.get("key.serializer")
        return None if not class_name else _SERIALIZERS.get(class_name.rpartition(".")[2], "")

    def _plain_key(self, key: bytes) -> bytes:
        if not self._key_layout:
            return key
        try:
            return struct.pack(self._key_layout, int(key))
        except (ValueError, struct.error):
            shown = key[:100].decode(errors="replace")
            raise BadValue(
                f"The key on line number {self.line_number} is not a number of key.serializer: '{shown}'"
            ) from None

    def _writer(self, part: str) -> JsonWriter:
        try:
            choice = self._choice(part)
        except ValueError as error:
            raise UserError(f"{part}.subject.name.strategy: {error}") from None
        return JsonWriter(self._registry, self._topic, choice, kind=self._kind, is_key=part == "key")

    def _choice(self, part: str) -> SchemaChoice:
        given = self._properties
        strategy = given.get(f"{part}.subject.name.strategy") or TOPIC_NAME
        message = given.get(f"{part}.schema.full.name")
        if is_true(given.get("use.latest.version")):
            return SchemaChoice(strategy=strategy, message=message)
        references = _references(given.get(f"{part}.refs"), part)
        if f"{part}.schema.id" in given:
            # Its text is registered for the subject of this topic, if it is not yet: as Confluent's reader does.
            registered = self._registry.by_id(self._id(part))
            text, references = registered.text, registered.references
        elif f"{part}.schema" in given:
            text = given[f"{part}.schema"]
        elif f"{part}.schema.file" in given:
            text = read_text(given[f"{part}.schema.file"])
        else:
            name = f"{part}.schema"
            raise UserError(f"Must provide the {part} schema in either {name}, {name}.id, or {name}.file")
        registers = given.get("auto.register.schemas", given.get("auto.register", "true"))
        return SchemaChoice(
            kind=self._kind,
            text=text,
            references=references,
            strategy=strategy,
            auto_register=is_true(registers),
            normalize=is_true(given.get("normalize.schemas")),
            message=message,
        )

    def _id(self, part: str) -> int:
        text = self._properties[f"{part}.schema.id"]
        if not text.isdecimal():
            raise UserError(f"Error parsing {part}.schema.id as int: '{text}'")
        return int(text)


def _references(text: str | None, part: str) -> tuple[SchemaReference, ...]:
    """Confluent's form: a list of {"name": …, "subject": …, "version": …}."""
    try:
        return tuple(
            SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in (json.loads(text) if text else ())
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f'{part}.refs: it is not a list of {{"name": …, "subject": …, "version": …}}'
        ) from None
