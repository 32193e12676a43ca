"""JSON with a JSON Schema, as registry_values.py reads and registry_writing.py writes it.

object with properties   a struct            integer, number, boolean   long, double, boolean
object with values of    a map of texts      string                     string, whatever its format
one type                 to that             [T, null], oneOf both      T
array with items         a list              anything else              the text of the JSON
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.arrow.registry_schemas import SchemaText

FRAME_BYTES: Final = 5
MAX_DEPTH: Final = 32
MAX_FIELDS: Final = 10_000
_NOT_FRAMED, _NO_JSON, _OTHER_TYPE = range(1, 4)
_REASONS: Final = {
    _NOT_FRAMED: "the value does not begin with the id of a schema",
    _NO_JSON: "the value is no JSON object",
    _OTHER_TYPE: "a field has another type than its schema says",
}
_SCALARS: Final = {
    "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()
}  # fmt: skip
Array = np.ndarray[Any, np.dtype[Any]]


class Found(NamedTuple):
    column: pa.Array
    reasons: Array

    def why(self, row: int) -> str:
        return _REASONS[int(self.reasons[row])]


class JsonFormat:
    needs_writers = False

    def __init__(self, schema: SchemaText) -> None:
        self.type: pa.DataType = arrow_type_of(schema.text)

    def add(self, schema_id: int, writer: SchemaText) -> None:
        pass

    def knows(self, schema_id: int) -> bool:
        return True

    def ids(self, column: pa.BinaryArray) -> Array:
        from penstock.records.columnar.avro_columns import ids_of

        return ids_of(column)

    def read(self, column: pa.BinaryArray, ids: Array) -> Found:
        framed = pc.if_else(pa.array(ids >= 0), column, pa.scalar(None, pa.binary()))
        reasons = np.zeros(len(ids), dtype=np.uint8)
        reasons[ids == -2] = _NOT_FRAMED
        if not pa.types.is_struct(self.type):
            return Found(_as_text(framed), reasons)
        from penstock.arrow.zone_files import TIME_ZONES
        from penstock.records.columnar.json_columns import LocalTime, parse_objects

        found = parse_objects(_blanked(framed), self.type, LocalTime(TIME_ZONES))
        reasons[found.incomplete] = _OTHER_TYPE
        reasons[found.malformed] = _NO_JSON
        blank = (ids >= 0) & found.column.is_null().to_numpy(zero_copy_only=False)
        reasons[blank] = _NO_JSON
        there = pa.array(~found.malformed)
        return Found(pc.if_else(there, found.column, pa.scalar(None, self.type)), reasons)


def _blanked(column: pa.BinaryArray) -> pa.BinaryArray:
    """With blanks for the frames, which JSON does not mind."""
    validity, ends, data = column.buffers()
    if data is None:
        return column
    starts = np.frombuffer(ends, dtype=np.int32)[column.offset : column.offset + len(column)]
    starts = starts[column.is_valid().to_numpy(zero_copy_only=False)]
    copied = np.frombuffer(data, dtype=np.uint8).copy()
    copied[starts[:, None] + np.arange(FRAME_BYTES)] = ord(" ")
    buffers = [validity, ends, pa.py_buffer(copied)]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers, offset=column.offset)


def _as_text(column: pa.BinaryArray) -> pa.StringArray:
    rows = column.to_pylist()
    return pa.array(
        [None if value is None else value[FRAME_BYTES:].decode(errors="replace") for value in rows],
        pa.string(),
    )


def arrow_type_of(text: str) -> pa.DataType:
    """ValueError where it is no JSON Schema."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON Schema") from None
    if not isinstance(schema, dict | bool):
        raise ValueError("it is no JSON Schema")
    return _Types(schema).of(schema, 0)


class _Types:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._count = 0

    def of(self, schema: Any, depth: int) -> pa.DataType:
        self._count += 1
        if self._count > MAX_FIELDS:
            raise ValueError(f"the schema has more than {MAX_FIELDS:,} fields")
        schema = self._one(schema, depth)
        if schema is None or depth > MAX_DEPTH:
            return pa.string()
        kind = schema.get("type")
        properties = schema.get("properties")
        if kind == "object" and isinstance(properties, dict) and properties:
            return pa.struct([(name, self.of(each, depth + 1)) for name, each in properties.items()])
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return pa.map_(pa.string(), self.of(schema["additionalProperties"], depth + 1))
        if kind == "array" and isinstance(schema.get("items"), dict):
            return pa.list_(pa.field("element", self.of(schema["items"], depth + 1)))
        return _SCALARS.get(kind, pa.string()) if isinstance(kind, str) else pa.string()

    def _one(self, schema: Any, depth: int) -> dict[str, Any] | None:
        """Without references within the schema, and without null; None where it is not one type."""
        for _ in range(MAX_DEPTH - depth):
            if not isinstance(schema, dict):
                return None
            if isinstance(schema.get("$ref"), str):
                schema = self._referred(schema["$ref"])
                continue
            choices = schema.get("oneOf") or schema.get("anyOf")
            if isinstance(choices, list):
                others = [each for each in choices if each != {"type": "null"}]
                if len(others) != 1:
                    return None
                schema = others[0]
                continue
            if isinstance(schema.get("type"), list):
                kinds = [kind for kind in schema["type"] if kind != "null"]
                return {**schema, "type": kinds[0]} if len(kinds) == 1 else None
            return schema
        return None

    def _referred(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found = self._root
        for part in reference[1:].strip("/").split("/"):
            if part:
                part = part.replace("~1", "/").replace("~0", "~")
                found = found.get(part) if isinstance(found, dict) else None
        return found


def format_reader(schema: SchemaText) -> JsonFormat:
    return JsonFormat(schema)


class JsonWriter:
    """Row by row, with the standard library. The values are not checked against the schema."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame

    def write(self, column: pa.Array) -> pa.BinaryArray:
        rows = column.to_pylist(maps_as_pydicts="strict")
        return pa.array([None if row is None else self._frame + _json(row) for row in rows], pa.binary())


def _json(value: Any) -> bytes:
    return json.dumps(value, default=_plain, separators=(",", ":"), ensure_ascii=False).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def format_writer(schema: SchemaText, kind: pa.DataType, frame: bytes) -> JsonWriter:
    return JsonWriter(frame)


def schema_text_of(kind: pa.DataType, name: str) -> str:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **_schema_of(kind)}
    return json.dumps(schema, separators=(",", ":"))


def _schema_of(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        return {
            "type": "object",
            "properties": {each.name: _nullable(_schema_of(each.type)) for each in kind},
        }
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(_schema_of(kind.value_type))}
    if pa.types.is_map(kind):
        if kind.key_type != pa.string():
            raise ValueError(f"a map's keys are strings in JSON, not {kind.key_type}")
        return {"type": "object", "additionalProperties": _nullable(_schema_of(kind.item_type))}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind):
        return {"type": "number"}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_date(kind):
        return {"type": "string", "format": "date"}
    return {"type": "string"}


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, dict(schema)]}


def full_name(schema: SchemaText) -> str | None:
    """Read here: executors have no parser of JSON Schema."""
    title = json.loads(schema.text).get("title")
    return title if isinstance(title, str) else None
