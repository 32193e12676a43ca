"""Avro's schemas as Connect's, by the rules of Confluent's converter: the way back of `avro_schemas`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.converters.avro_schemas import (
    DEFAULT,
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    DOC,
    ENTRY,
    ENUM_NAME,
    ENUM_SYMBOL,
    FIXED_SIZE,
    INTERNAL_TYPE,
    NAME,
    NAMESPACE,
    PARAMETERS,
    PRECISION,
    RECORD_DOC,
    SCALARS,
    TYPE,
    UNION_NAME,
    VERSION,
    AvroForm,
    items_of,
)
from penstock.connect.data.logical import DATE, DECIMAL_NAME, LOGICAL, TIME, TIMESTAMP, decimal
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.schemas.avro.nodes import Array, Enum, Fixed, Map, Node, Record, Union

_DEFAULT_NAMES: Final = re.compile(rf"{re.escape(NAMESPACE)}\.({DEFAULT_NAME}|{ENTRY})\d*")
_PLAIN: Final[Mapping[str, Type]] = {
    "boolean": Type.BOOLEAN, "int": Type.INT32, "long": Type.INT64, "float": Type.FLOAT32, "double": Type.FLOAT64,
    "string": Type.STRING, "bytes": Type.BYTES, "fixed": Type.BYTES, "enum": Type.STRING,
}  # fmt: skip
_BY_LOGICAL_TYPE: Final = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}


def from_avro(node: Node, form: AvroForm) -> Schema:
    """DataError for a type that contains itself."""
    return _Reading(form).schema(node, None, _NOTHING, is_optional=False)


class _Nothing:
    """There is no default."""


_NOTHING: Final = _Nothing()


class _Reading:
    def __init__(self, form: AvroForm) -> None:
        self._form = form
        self._inside: set[int] = set()

    def schema(self, node: Node, doc: str | None, default: Any, *, is_optional: bool) -> Schema:
        if isinstance(node, Union):
            return self._union(node, doc, default)
        if id(node) in self._inside:
            raise DataError(f"the Avro type {node.full_name} contains itself: Connect has no schema for it")
        self._inside.add(id(node))
        made = self._bare(node)
        self._inside.discard(id(node))
        made = made.with_(is_optional=is_optional, **self._properties(node, made, doc))
        if default is _NOTHING and self._form.has_meta_data:
            default = node.props.get(DEFAULT, _NOTHING)
        if default is _NOTHING or default is None:
            return made
        return made.with_(default=default_from_avro(made, default, self._form))

    def _properties(self, node: Node, made: Schema, doc: str | None) -> dict[str, Any]:
        props, has_meta = node.props, self._form.has_meta_data
        found: dict[str, Any] = {}
        parameters = dict(made.parameters)
        if has_meta:
            own_doc = getattr(node, "doc", None)
            said_doc = doc if doc is not None else own_doc if own_doc is not None else props.get(DOC)
            if isinstance(said_doc, str):
                found["doc"] = said_doc
            if isinstance(node, Record) and own_doc is not None:
                parameters[RECORD_DOC] = own_doc
            if isinstance(props.get(VERSION), int):
                found["version"] = props[VERSION]
            said = props.get(PARAMETERS)
            if isinstance(said, dict):
                parameters |= {key: each for key, each in said.items() if isinstance(each, str)}
        name = props.get(NAME) if has_meta else None
        if isinstance(name, str):
            found["name"] = name
        elif isinstance(node, Record) and not _is_default_name(node.full_name):
            found["name"] = node.full_name
        if parameters:
            found["parameters"] = parameters
        return found

    def _bare(self, node: Node) -> Schema:
        if isinstance(node, Record):
            fields = [
                (
                    field.name,
                    self.schema(
                        field.type,
                        field.doc,
                        field.default if field.has_default else _NOTHING,
                        is_optional=False,
                    ),
                )
                for field in node.fields.values()
            ]
            return Schema(Type.STRUCT, fields=fields)
        if isinstance(node, Array):
            if is_entry(node.items):
                entry = node.items
                assert isinstance(entry, Record)
                key, value = (self._part(entry.fields[name].type) for name in ("key", "value"))
                made = Schema(Type.MAP, keys=key, items=value)
                said = entry.props.get(NAME)
                own = said if isinstance(said, str) else entry.full_name
                return made if _is_default_name(entry.full_name) else made.with_(name=own)
            return Schema(Type.ARRAY, items=self._part(node.items))
        if isinstance(node, Map):
            return Schema(Type.MAP, keys=Schema(Type.STRING), items=self._part(node.values))
        return self._scalar(node)

    def _part(self, node: Node) -> Schema:
        return self.schema(node, None, _NOTHING, is_optional=False)

    def _scalar(self, node: Node) -> Schema:
        props = node.props
        if node.type in ("bytes", "fixed"):
            if props.get("logicalType") == "decimal" or props.get(NAME) == DECIMAL_NAME:
                scale, precision = props.get("scale", 0), props.get("precision", DEFAULT_PRECISION)
                made = decimal(scale if isinstance(scale, int) else 0)
                if precision != DEFAULT_PRECISION:
                    made = made.with_(parameters={**made.parameters, PRECISION: str(precision)})
            else:
                made = Schema(Type.BYTES)
            if isinstance(node, Fixed):
                made = made.with_(parameters={**made.parameters, FIXED_SIZE: str(node.size)})
            return made
        if isinstance(node, Enum):
            symbols = {ENUM_SYMBOL + symbol: symbol for symbol in node.symbols}
            return Schema(Type.STRING, parameters={ENUM_NAME: node.full_name, **symbols})
        logical = _BY_LOGICAL_TYPE.get((node.type, props.get("logicalType", "")))
        if logical is not None:
            return logical
        for each in (DATE, TIME, TIMESTAMP):
            if props.get(NAME) == each.name and SCALARS[each.type] == node.type:
                return each
        if node.type == "int" and props.get(TYPE) in (str(Type.INT8), str(Type.INT16)):
            return Schema(Type(props[TYPE]))
        if node.type not in _PLAIN:
            raise DataError(f"Couldn't translate unsupported schema type {node.type}.")
        return Schema(_PLAIN[node.type])

    def _union(self, node: Union, doc: str | None, default: Any) -> Schema:
        branches = [branch for branch in node.branches if branch.type != "null"]
        has_null = len(branches) < len(node.branches)
        if len(branches) == 1:
            return self.schema(branches[0], doc, default, is_optional=has_null)
        if not branches:
            raise DataError("Couldn't translate a union without types.")
        fields = []
        for branch in branches:
            made = self.schema(branch, None, _NOTHING, is_optional=True)
            fields.append((branch_name(branch, self._form), made))
        made = Schema(Type.STRUCT, name=UNION_NAME, fields=fields, is_optional=has_null)
        if doc is not None and self._form.has_meta_data:
            made = made.with_(doc=doc)
        if default is _NOTHING or default is None:
            return made
        # A default is of the first branch.
        first = made.fields[0]
        value = Struct(made)
        value.values[0] = default_from_avro(first.schema, default, self._form)
        return made.with_(default=value)


def _is_default_name(full: str) -> bool:
    return _DEFAULT_NAMES.fullmatch(full) is not None


def is_entry(node: Node) -> bool:
    return (
        isinstance(node, Record)
        and (node.full_name == f"{NAMESPACE}.{ENTRY}" or node.props.get(INTERNAL_TYPE) == ENTRY)
        and {"key", "value"} <= node.fields.keys()
    )


def branch_name(node: Node, form: AvroForm) -> str:
    """Of a union's branch, as the field of the struct that it becomes."""
    return node.full_name if form.is_enhanced else node.full_name.rpartition(".")[2]


def default_from_avro(schema: Schema, value: Any, form: AvroForm) -> Any:
    """DataError."""
    if value is None:
        return None
    try:
        found = _default(schema, value, form)
    except (AttributeError, KeyError, TypeError, ValueError, UnicodeEncodeError):
        raise DataError(f"Invalid default value {value!r} for a schema of type {schema.type.name}") from None
    logical = LOGICAL.get(schema.name or "")
    return found if logical is None or schema.type is not logical.base else logical.from_base(schema, found)


def _default(schema: Schema, value: Any, form: AvroForm) -> Any:
    if schema.type is Type.BYTES:
        return value.encode("latin-1")
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return float(value)
    if schema.type is Type.ARRAY:
        return [default_from_avro(items_of(schema), each, form) for each in value]
    if schema.type is Type.MAP:
        if isinstance(value, dict):
            return {key: default_from_avro(items_of(schema), each, form) for key, each in value.items()}
        assert schema.keys is not None
        return {
            default_from_avro(schema.keys, each["key"], form): default_from_avro(
                items_of(schema), each["value"], form
            )
            for each in value
        }
    if schema.type is Type.STRUCT:
        made = Struct(schema)
        for field in schema.fields:
            given = value.get(field.name, field.schema.default)
            is_made = given is field.schema.default
            made.values[field.index] = given if is_made else default_from_avro(field.schema, given, form)
        return made
    return value
