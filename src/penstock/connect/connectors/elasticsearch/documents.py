"""Records as lines of a bulk request, and schemas as mappings. Pure.

{"index":{"_index":"orders","_id":"7","version":41,"version_type":"external"}}
{"id":7,"note":"first"}
"""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from penstock.connect.connectors.elasticsearch.sink_settings import DELETE, IGNORE, UPSERT
from penstock.connect.data.logical import DECIMAL_NAME, EPOCH, LOGICAL, TIME_NAME
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import SinkRecord

_OPTIONS: Final = orjson.OPT_NON_STR_KEYS
_TEXT: Final = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_MAPPED: Final[Mapping[Type, Any]] = {
    Type.INT8: {"type": "byte"}, Type.INT16: {"type": "short"}, Type.INT32: {"type": "integer"}, Type.INT64: {"type": "long"},
    Type.FLOAT32: {"type": "float"}, Type.FLOAT64: {"type": "double"}, Type.BOOLEAN: {"type": "boolean"}, Type.STRING: _TEXT,
    Type.BYTES: {"type": "binary"},
}  # fmt: skip
_RETRIES_ON_CONFLICT: Final = 3


class Action(NamedTuple):
    record: SinkRecord
    target: str
    lines: bytes


class Documents:
    """`values`: the parsed settings."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._null: str = values["behavior.on.null.values"].lower()
        self._upserts = values["write.method"].lower() == UPSERT
        self._ignores_keys: bool = values["key.ignore"]
        self._keyless = frozenset(values["topic.key.ignore"])
        self._stream = ""
        if values["data.stream.type"].lower() != "none":
            self._stream = "-".join(
                (
                    values["data.stream.type"].lower(),
                    values["data.stream.dataset"],
                    values["data.stream.namespace"],
                )
            )
        self._time_fields: tuple[str, ...] = tuple(values["data.stream.timestamp.field"])

    @property
    def uses_streams(self) -> bool:
        return bool(self._stream)

    def index_of(self, topic: str) -> str:
        if self._stream:
            return self._stream.replace("${topic}", topic).lower()
        # A name cannot begin with these.
        return topic.lower().lstrip("-_+") or "_"

    def action(self, record: SinkRecord) -> Action | None:
        """None: there is nothing to do for it. DataError: it makes no document."""
        index = self.index_of(record.topic)
        by_key = not (self._ignores_keys or record.topic in self._keyless or self._stream)
        if record.value is None:
            if self._null == IGNORE or (self._null == DELETE and not by_key):
                return None
            if self._null != DELETE:
                raise DataError("a record without a value makes no document (behavior.on.null.values)")
            head: dict[str, Any] = {"_index": index, "_id": _id_of(record), **_version(record)}
            return Action(record, index, _line({"delete": head}))
        document = self._object(record)
        head = {"_index": index, "_id": _id_of(record) if by_key else "+".join(map(str, record.original))}
        if self._stream:
            document = {"@timestamp": self._time(record, document), **document}
            return Action(record, index, _line({"create": head}) + _line(document))
        if self._upserts:
            head["retry_on_conflict"] = _RETRIES_ON_CONFLICT
            return Action(
                record, index, _line({"update": head}) + _line({"doc": document, "doc_as_upsert": True})
            )
        if by_key:
            head.update(_version(record))
        return Action(record, index, _line({"index": head}) + _line(document))

    def _object(self, record: SinkRecord) -> dict[str, Any]:
        found = self._plain(record.value)
        if not isinstance(found, dict):
            raise DataError(f"a document is made of a struct or a map, not of {type(record.value).__name__}")
        return found

    def _time(self, record: SinkRecord, document: Mapping[str, Any]) -> Any:
        for name in self._time_fields:
            if document.get(name) is not None:
                return document[name]
        return record.timestamp_ms

    def _plain(self, value: Any) -> Any:
        turn = _PLAIN.get(type(value))
        if turn is not None:
            return turn(value)
        if isinstance(value, Struct):
            return {name: self._plain(one) for name, one in value.items()}
        if isinstance(value, dict):
            return {_name(name): self._plain(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        raise DataError(f"{type(value).__name__} has no place in a document")


def _id_of(record: SinkRecord) -> str:
    key = record.key
    if key is None:
        raise DataError("a record without a key has no document's id: set key.ignore=true")
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise DataError(f"a document's id is made of a text or a whole number, not of {type(key).__name__}")
    text = str(key)
    if not 0 < len(text.encode()) <= 512:
        raise DataError("a document's id has 1 to 512 bytes")
    return text


def _version(record: SinkRecord) -> dict[str, Any]:
    return {"version": record.original[2], "version_type": "external"}


def _line(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=_OPTIONS) + b"\n"
    except orjson.JSONEncodeError as error:
        raise DataError(f"no JSON can be made of it: {error}") from None


def _name(name: Any) -> str:
    return name if isinstance(name, str) else "null" if name is None else str(name)


def _same(value: Any) -> Any:
    return value


def _ms(value: dt.datetime) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - EPOCH) // dt.timedelta(milliseconds=1)


_PLAIN: Final[Mapping[type, Callable[[Any], Any]]] = {
    type(None): _same, str: _same, int: _same, float: _same, bool: _same,
    bytes: lambda value: b64encode(value).decode(), Decimal: float, dt.datetime: _ms, dt.date: lambda value: value.isoformat(),
    dt.time: lambda value: value.isoformat(timespec="milliseconds"),
}  # fmt: skip


def mappings_of(schema: Schema) -> dict[str, Any]:
    """Of a struct, or of anything in it."""
    if schema.name == DECIMAL_NAME:
        return {"type": "double"}
    if schema.name in LOGICAL:
        # A time of the day is a text that does not need to be a date.
        return {"type": "keyword"} if schema.name == TIME_NAME else {"type": "date"}
    if schema.type is Type.STRUCT:
        fields = {field.name: mappings_of(field.schema) for field in schema.fields}
        return {"properties": fields}
    if schema.type is Type.ARRAY:
        return {} if schema.items is None else mappings_of(schema.items)
    if schema.type is Type.MAP:
        return {"type": "object"}
    found: dict[str, Any] = dict(_MAPPED[schema.type])
    return found
