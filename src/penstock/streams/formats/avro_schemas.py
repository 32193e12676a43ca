"""Avro schemas of columns, as ksqlDB writes them by way of Kafka Connect, and the columns of Avro schemas.

Every column may be null. A struct is a record that is named by the way to it (`…KsqlDataSourceSchema_ADDRESS`); a map is an array
of records with `key` and `value`, since its keys may be null, too; DECIMAL is bytes with Avro's logical type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from penstock.schemas.avro.nodes import Array, Map, Node, Record, Union
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.plan import types
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

NAMESPACE: Final = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME: Final = f"{NAMESPACE}.KsqlDataSourceSchema"
_CONNECT: Final = "org.apache.kafka.connect.data."
_MAP_ENTRY: Final = "MapEntry"
_PLAIN: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "int",
    Kind.BIGINT: "long",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}
_LOGICAL: Final = {
    Kind.DATE: ("int", "Date", "date"),
    Kind.TIME: ("int", "Time", "time-millis"),
    Kind.TIMESTAMP: ("long", "Timestamp", "timestamp-millis"),
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_DEPTH: Final = 100


def key_schema_name(source: str) -> str:
    """Of the record that keys of a sink are, where they have several columns: USER_VISITS → …UserVisitsKey."""
    return f"{NAMESPACE}.{''.join(part.capitalize() for part in source.split('_'))}Key"


def avro_text(columns: Sequence[Column], *, is_wrapped: bool, full_name: str | None) -> str:
    """FormatRefused."""
    name = (full_name or DEFAULT_NAME).strip()
    if not name:
        raise FormatRefused("the schema name cannot be empty")
    space, _, _ = name.rpartition(".")
    making = _Making(space)
    if not is_wrapped:
        return json.dumps(making.type(columns[0].type, name))
    return json.dumps(making.record(name, [(column.name, column.type) for column in columns]))


class _Making:
    def __init__(self, space: str) -> None:
        self._space = space

    def type(self, type_: SqlType, name: str) -> Any:
        if type_.kind in _PLAIN:
            return _PLAIN[type_.kind]
        if type_.kind in _LOGICAL:
            plain, connect, logical = _LOGICAL[type_.kind]
            return {
                "type": plain,
                "connect.version": 1,
                "connect.name": _CONNECT + connect,
                "logicalType": logical,
            }
        if type_.kind == Kind.DECIMAL:
            scale, precision = type_.scale, type_.precision
            return {
                "type": "bytes",
                "scale": scale,
                "precision": precision,
                "connect.version": 1,
                "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
                "connect.name": f"{_CONNECT}Decimal",
                "logicalType": "decimal",
            }
        if type_.kind == Kind.STRUCT:
            return self.record(name, type_.fields)
        assert type_.element is not None
        if type_.kind == Kind.ARRAY:
            return {"type": "array", "items": self._optional(type_.element, name)}
        return self._map(type_, name)

    def _optional(self, type_: SqlType, name: str) -> Any:
        return ["null", self.type(type_, name)]

    def _map(self, type_: SqlType, name: str) -> Any:
        if type_.key is None or type_.key.kind != Kind.STRING or type_.element is None:
            raise FormatRefused("Avro only supports MAPs with STRING keys")
        entry = {
            "type": "record",
            "name": _simple(name),
            "fields": [
                {"name": "key", "type": ["null", "string"], "default": None},
                {"name": "value", "type": self._optional(type_.element, f"{name}_MapValue"), "default": None},
            ],
            "connect.internal.type": _MAP_ENTRY,
        }
        return {"type": "array", "items": entry, "connect.name": name}

    def record(self, name: str, fields: Sequence[tuple[str, SqlType]]) -> Any:
        return {
            "type": "record",
            "name": _simple(name),
            **({"namespace": self._space} if self._space else {}),
            "fields": [
                {"name": field_name(each), "type": self._optional(type_, f"{name}_{each}"), "default": None}
                for each, type_ in fields
            ],
            "connect.name": name,
        }


def field_name(name: str) -> str:
    """Of a column, as Avro has it. FormatRefused."""
    return _checked(name.replace(".", "_"))


def _simple(full_name: str) -> str:
    return _checked(full_name.rpartition(".")[2])


def _checked(name: str) -> str:
    if _NAME.fullmatch(name):
        return name
    if not name:
        raise FormatRefused("Schema is not compatible with Avro: Empty name")
    what = "Illegal character in" if name[0].isalpha() or name[0] == "_" else "Illegal initial character"
    raise FormatRefused(f"Schema is not compatible with Avro: {what}: {name}")


# The other way: columns of a schema


class Unsupported(Exception):
    """ksqlDB has no type for it: a field with it is left out."""


def type_of(node: Node, *, keep_names: bool, depth: int = 0) -> SqlType:
    """Unsupported."""
    if depth > MAX_DEPTH:
        raise Unsupported("the types contain themselves")
    if isinstance(node, Union):
        return _union_type(node, keep_names, depth)
    if isinstance(node, Record):
        return _record_type(node, keep_names, depth)
    if isinstance(node, Map):
        return types.map_of(types.STRING, type_of(node.values, keep_names=keep_names, depth=depth + 1))
    if isinstance(node, Array):
        entry = entry_of(node)
        if entry is not None:
            value = type_of(entry.fields["value"].type, keep_names=keep_names, depth=depth + 1)
            return types.map_of(types.STRING, value)
        return types.array(type_of(node.items, keep_names=keep_names, depth=depth + 1))
    return _scalar_type(node)


def entry_of(node: Array) -> Record | None:
    """The record of key and value, where the array is a map in Connect's form."""
    items = entries_of(node)
    if items is None:
        return None
    is_marked = items.props.get("connect.internal.type") == _MAP_ENTRY
    return items if is_marked or items.name.simple == _MAP_ENTRY else None


def entries_of(node: Array) -> Record | None:
    """The same where the schema does not say that it is a map: enough for a column that is declared as one."""
    items = node.items
    return items if isinstance(items, Record) and set(items.fields) == {"key", "value"} else None


def is_decimal(node: Node) -> bool:
    return node.type in ("bytes", "fixed") and node.props.get("logicalType") == "decimal"


def member_name(branch: Node) -> str:
    """Of a branch in the struct that a union of several types is."""
    return branch.full_name.rpartition(".")[2]


def _scalar_type(node: Node) -> SqlType:
    logical = node.props.get("logicalType")
    match node.type:
        case "boolean":
            return types.BOOLEAN
        case "int":
            return {"date": types.DATE, "time-millis": types.TIME}.get(str(logical), types.INTEGER)
        case "long":
            return types.TIMESTAMP if logical == "timestamp-millis" else types.BIGINT
        case "float" | "double":
            return types.DOUBLE
        case "string" | "enum":
            return types.STRING
        case "bytes" | "fixed":
            if is_decimal(node):
                return types.decimal(int(node.props.get("precision", 64)), int(node.props.get("scale", 0)))
            return types.BYTES
    raise Unsupported(f"Unsupported type: {node.type}")


def _record_type(node: Record, keep_names: bool, depth: int) -> SqlType:
    fields = []
    for name, each in node.fields.items():
        try:
            type_ = type_of(each.type, keep_names=keep_names, depth=depth + 1)
        except Unsupported:
            if depth >= MAX_DEPTH:
                raise
            continue
        fields.append((name if keep_names else name.upper(), type_))
    return types.struct(*fields)


def _union_type(node: Union, keep_names: bool, depth: int) -> SqlType:
    branches = [branch for branch in node.branches if branch.type != "null"]
    if len(branches) == 1:
        return type_of(branches[0], keep_names=keep_names, depth=depth + 1)
    names = [member_name(branch) for branch in branches]
    return types.struct(
        *(
            (
                name if keep_names else name.upper(),
                type_of(branch, keep_names=keep_names, depth=depth + 1),
            )
            for name, branch in zip(names, branches, strict=True)
        )
    )
