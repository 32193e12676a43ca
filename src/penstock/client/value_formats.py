"""Keys and values of records by the schemas of a registry, as commands offer it: which kind, which schema, and what they become.

A part (key or value) has one of FORMATS. `text` is as it is; `registry` has the kind of its schema, whichever that is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.schemas.model import InvalidValue

if TYPE_CHECKING:
    from penstock.client.json_lines import JsonReader, JsonWriter
    from penstock.client.schema_registry import SchemaRegistry
    from penstock.client.schema_values import SchemaChoice

TEXT: Final = "text"
REGISTRY: Final = "registry"
FORMATS: Final = (TEXT, REGISTRY, "avro", "json-schema", "protobuf")
STRATEGIES: Final = ("topic-name", "record-name", "topic-record-name")
VARIABLE: Final = "PENSTOCK_SCHEMA_REGISTRY"
URL: Final = "schema.registry.url"
_ARROW_NAMES: Final = {"json-schema": "json"}


class Asked(NamedTuple):
    """What was asked for one part that is written."""

    format: str = TEXT
    schema: str | None = None
    """Its text, or the name of its file."""
    schema_id: int | None = None


class ReadFormats(NamedTuple):
    """How the parts of records are read; None where they are shown as they are."""

    key: JsonReader | None
    value: JsonReader | None

    def readable(self, key: bytes | None, value: bytes | None) -> dict[str, Any]:
        """What the parts say that have a reader and can be read."""
        found = {}
        for part, reader, data in (("key", self.key, key), ("value", self.value, value)):
            if reader is not None and data is not None:
                with suppress(InvalidValue):
                    found[part] = reader.read(data)
        return found

    def decoded(self, record: Any) -> dict[str, Any]:
        """What the parts say that have a reader and are not null. InvalidValue, with the record's place."""
        found = {}
        for part, reader, data in (("key", self.key, record.key()), ("value", self.value, record.value())):
            if reader is None or data is None:
                continue
            try:
                found[part] = reader.read(data)
            except InvalidValue as error:
                place = f"{record.topic()}-{record.partition()}@{record.offset()}"
                raise InvalidValue(f"{place}: the {part}: {error}") from None
        return found


class WriteFormats(NamedTuple):
    """How the parts of records are written; None where they go out as they are."""

    key: JsonWriter | None = None
    value: JsonWriter | None = None


def readers(connection: Connection, *, key: str, value: str, plain: bool, url: str | None) -> ReadFormats:
    """Of the formats of keys and values."""
    if key == value == TEXT:
        return ReadFormats(None, None)
    from penstock.client.json_lines import KIND_NAMES, JsonReader

    registry = registry_of(connection, url)
    made = (
        None if each == TEXT else JsonReader(registry, KIND_NAMES.get(each), plain=plain)
        for each in (key, value)
    )
    return ReadFormats(*made)


def arrow_arguments(connection: Connection, *, key: str, value: str, url: str | None) -> dict[str, Any]:
    """For `penstock.arrow`, with the properties of the registry under `options`."""
    asked = {"key_format": key, "value_format": value}
    found = {name: _ARROW_NAMES.get(each, each) for name, each in asked.items() if each != TEXT}
    if not found:
        return {"options": {}}
    given = connection.registry_properties
    return {
        **found,
        "schema_registry_url": url_of(given, url),
        "options": {name: each for name, each in given.items() if name != URL},
    }


def writers(
    connection: Connection,
    topic: str,
    *,
    key: Asked,
    value: Asked,
    message: str | None,
    strategy: str,
    auto_register: bool,
    url: str | None,
) -> WriteFormats:
    """UserError where there is no such schema, or where it cannot be registered."""
    if key.format == value.format == TEXT:
        return WriteFormats(None, None)
    from penstock.client.json_lines import KIND_NAMES, JsonWriter

    registry = registry_of(connection, url)
    shared: dict[str, Any] = {"strategy": strategy.replace("-", "_"), "auto_register": auto_register}

    def writer(part: str, asked: Asked, **more: Any) -> JsonWriter | None:
        if asked.format == TEXT:
            return None
        kind = KIND_NAMES.get(asked.format)
        made = JsonWriter(
            registry, topic, _choice(part, asked, **more, **shared), kind=kind, is_key=part == "key"
        )
        _check(made, part, topic)
        return made

    return WriteFormats(writer("key", key), writer("value", value, message=message))


def registry_of(connection: Connection, url: str | None) -> SchemaRegistry:
    from penstock.client.schema_registry import SchemaRegistry

    properties = connection.registry_properties
    return SchemaRegistry(url_of(properties, url), properties)


def url_of(properties: Mapping[str, str], url: str | None) -> str:
    from penstock.client.json_lines import DEFAULT_URL

    return url or properties.get(URL) or os.environ.get(VARIABLE) or DEFAULT_URL


def _choice(part: str, asked: Asked, **shared: Any) -> SchemaChoice:
    from penstock.client.json_lines import KIND_NAMES
    from penstock.client.schema_values import SchemaChoice

    if asked.schema is not None:
        text = _schema_text(asked.schema, f"--{part}-schema")
        return SchemaChoice(kind=KIND_NAMES[asked.format], text=text, **shared)
    return SchemaChoice(id=asked.schema_id, **shared)


def _schema_text(given: str, option: str) -> str:
    """@FILE and FILE are read; what has braces, brackets or quotes is the text itself."""
    from penstock.client.property_files import read_text

    if not given.startswith("@") and (
        given.strip() in ("true", "false") or any(each in given for each in '{["')
    ):
        return given
    try:
        return read_text(given.removeprefix("@"))
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _check(writer: JsonWriter, part: str, topic: str) -> None:
    from penstock.client.schema_registry import RegistryRefused

    try:
        writer.check()
    except RegistryRefused as error:
        if error.status == 404:
            way_out = f"Another schema is chosen with --{part}-schema or --{part}-schema-id."
            raise UserError(f"the {part}s of {topic}: {str(error).rstrip('.')}. {way_out}") from None
        raise
    except UserError as error:
        raise UserError(f"the {part}s of {topic}: {error}") from None
