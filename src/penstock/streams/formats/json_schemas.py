"""JSON Schemas of columns, as ksqlDB writes them by way of Kafka Connect, and the columns of JSON Schemas.

Connect says with properties of its own (`connect.type`, `title`) which of its types a number or a text is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.streams.formats.avro_schemas import MAX_DEPTH, Unsupported
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.plan import types
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

_CONNECT: Final = "org.apache.kafka.connect.data."
_PLAIN: Final[dict[Kind, dict[str, Any]]] = {
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.INTEGER: {"type": "integer", "connect.type": "int32"},
    Kind.BIGINT: {"type": "integer", "connect.type": "int64"},
    Kind.DOUBLE: {"type": "number", "connect.type": "float64"},
    Kind.STRING: {"type": "string"},
    Kind.BYTES: {"type": "string", "connect.type": "bytes"},
    Kind.DATE: {"type": "integer", "title": f"{_CONNECT}Date", "connect.version": 1, "connect.type": "int32"},
    Kind.TIME: {"type": "integer", "title": f"{_CONNECT}Time", "connect.version": 1, "connect.type": "int32"},
    Kind.TIMESTAMP: {
        "type": "integer",
        "title": f"{_CONNECT}Timestamp",
        "connect.version": 1,
        "connect.type": "int64",
    },
}
_TITLES: Final = {
    f"{_CONNECT}Date": types.DATE,
    f"{_CONNECT}Time": types.TIME,
    f"{_CONNECT}Timestamp": types.TIMESTAMP,
}


def json_text(columns: Sequence[Column], *, is_wrapped: bool, full_name: str | None) -> str:
    """FormatRefused."""
    if not is_wrapped:
        return json.dumps(_schema(columns[0].type))
    made = _object([(column.name, column.type) for column in columns])
    return json.dumps({**made, "title": full_name} if full_name else made)


def _schema(type_: SqlType) -> dict[str, Any]:
    if type_.kind in _PLAIN:
        return _PLAIN[type_.kind]
    if type_.kind == Kind.DECIMAL:
        parameters = {"scale": str(type_.scale), "connect.decimal.precision": str(type_.precision)}
        return {
            "type": "number",
            "title": f"{_CONNECT}Decimal",
            "connect.version": 1,
            "connect.type": "bytes",
            "connect.parameters": parameters,
        }
    if type_.kind == Kind.STRUCT:
        return _object(type_.fields)
    assert type_.element is not None
    if type_.kind == Kind.ARRAY:
        return {"type": "array", "items": _optional(type_.element)}
    if type_.key is None or type_.key.kind != Kind.STRING:
        raise FormatRefused("JSON only supports MAP types with STRING keys")
    return {"type": "object", "connect.type": "map", "additionalProperties": _optional(type_.element)}


def _optional(type_: SqlType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _schema(type_)]}


def _object(fields: Sequence[tuple[str, SqlType]]) -> dict[str, Any]:
    properties = {
        name: {"connect.index": place, **_optional(type_)} for place, (name, type_) in enumerate(fields)
    }
    return {"type": "object", "properties": properties}


# The other way: columns of a schema


def type_of(text: str, *, keep_names: bool, others: Mapping[str, str] | None = None) -> SqlType:
    """Unsupported. `others` are the texts of schemas that are referred to, by name."""
    return _Reading(json.loads(text), keep_names, others or {}).type(None, 0)


class _Reading:
    def __init__(self, root: Any, keep_names: bool, others: Mapping[str, str]) -> None:
        self._root = root
        self._keep_names = keep_names
        self._others = others

    def type(self, said: Any, depth: int) -> SqlType:
        said = self._root if said is None else said
        if depth > MAX_DEPTH:
            raise Unsupported("the types contain themselves")
        if not isinstance(said, dict):
            raise Unsupported("Unsupported type: a schema that takes everything")
        if "$ref" in said:
            return self._referred(str(said["$ref"]), depth)
        for word in ("oneOf", "anyOf", "allOf"):
            if word in said:
                return self._alternatives(said[word], depth)
        kind = said.get("type")
        if isinstance(kind, list):
            return self._alternatives([{**said, "type": each} for each in kind], depth)
        return self._plain(said, kind, depth)

    def _plain(self, said: dict[str, Any], kind: Any, depth: int) -> SqlType:
        connect, title = said.get("connect.type"), said.get("title")
        if connect == "bytes" and title == f"{_CONNECT}Decimal":
            parameters = said.get("connect.parameters") or {}
            return types.decimal(
                int(parameters.get("connect.decimal.precision", 64)), int(parameters.get("scale", 0))
            )
        match kind:
            case "boolean":
                return types.BOOLEAN
            case "integer":
                if title in _TITLES:
                    return _TITLES[title]
                return types.INTEGER if connect in ("int8", "int16", "int32") else types.BIGINT
            case "number":
                return types.DOUBLE
            case "string":
                return types.BYTES if connect == "bytes" else types.STRING
            case "array":
                return self._array(said, depth)
            case "object":
                return self._object(said, depth)
        if "enum" in said:
            return types.STRING
        if "properties" in said:
            return self._object(said, depth)
        raise Unsupported(f"Unsupported type: {kind}")

    def _array(self, said: dict[str, Any], depth: int) -> SqlType:
        items = said.get("items")
        if not isinstance(items, dict):
            raise Unsupported("Unsupported type: an array of anything")
        if said.get("connect.type") == "map":
            return types.map_of(types.STRING, self.type(items["properties"]["value"], depth + 1))
        return types.array(self.type(items, depth + 1))

    def _object(self, said: dict[str, Any], depth: int) -> SqlType:
        properties = said.get("properties") or {}
        more = said.get("additionalProperties")
        if said.get("connect.type") == "map" or (not properties and isinstance(more, dict)):
            return types.map_of(types.STRING, self.type(more, depth + 1))
        fields = []
        for name, each in sorted(properties.items(), key=lambda item: _index(item[1])):
            try:
                fields.append((name if self._keep_names else name.upper(), self.type(each, depth + 1)))
            except Unsupported:
                if depth >= MAX_DEPTH:
                    raise
        return types.struct(*fields)

    def _alternatives(self, said: list[Any], depth: int) -> SqlType:
        others = [each for each in said if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(others) == 1:
            return self.type(others[0], depth + 1)
        return types.struct(
            *(
                (f"CONNECT_UNION_FIELD_{place}", self.type(each, depth + 1))
                for place, each in enumerate(others)
            )
        )

    def _referred(self, target: str, depth: int) -> SqlType:
        name, _, path = target.partition("#")
        if name:
            if name not in self._others:
                raise Unsupported(f"the schema refers to {name}, which is not there")
            other = _Reading(json.loads(self._others[name]), self._keep_names, self._others)
            return other.type({"$ref": f"#{path}"} if path else None, depth + 1)
        found = self._root
        for step in filter(None, path.split("/")):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is None:
            raise Unsupported(f"the schema has no {target}")
        return self.type(found, depth + 1)


def _index(said: Any) -> int:
    index = said.get("connect.index") if isinstance(said, dict) else None
    return index if isinstance(index, int) else 1 << 30
