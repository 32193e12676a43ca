"""Connect's schemas as Avro's and back, by the rules of Confluent's converter.

    INT8           {"type":"int","connect.type":"int8"}                 INT16 likewise
    optional       ["null", X], default null; with a default of its own [X, "null"]
    Date           {"type":"int","connect.version":1,"connect.name":"org.apache.kafka.connect.data.Date","logicalType":"date"}
    Decimal        {"type":"bytes","scale":2,"precision":64, …,"logicalType":"decimal"}
    map            a map where keys are text that is never null; else an array of records MapEntry {key, value}
    struct         a record; without a name io.confluent.connect.avro.ConnectDefault, ConnectDefault2, …
    union          a struct io.confluent.connect.avro.Union with a field for each branch, one of which is set

The order of properties is Confluent's, so that a schema that its converter has registered is found again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    LOGICAL,
    TIME_NAME,
    TIMESTAMP_NAME,
    scale_of,
)
from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
ENTRY: Final = "MapEntry"
UNION_NAME: Final = NAMESPACE + ".Union"
ENUM_NAME: Final = NAMESPACE + ".Enum"
ENUM_SYMBOL: Final = ENUM_NAME + "."
FIXED_SIZE: Final = "connect.fixed.size"
PRECISION: Final = "connect.decimal.precision"
DEFAULT_PRECISION: Final = 64
RECORD_DOC: Final = "connect.record.doc"
INTERNAL_TYPE: Final = "connect.internal.type"
NAME, VERSION, DOC = "connect.name", "connect.version", "connect.doc"
PARAMETERS, DEFAULT, TYPE = "connect.parameters", "connect.default", "connect.type"
SCALARS: Final[Mapping[Type, str]] = {
    Type.INT8: "int", Type.INT16: "int", Type.INT32: "int", Type.INT64: "long", Type.FLOAT32: "float", Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean", Type.STRING: "string", Type.BYTES: "bytes",
}  # fmt: skip
_LOGICAL_TYPES: Final[Mapping[str, str]] = {
    DATE_NAME: "date", TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis",
}  # fmt: skip
_BAD_FIRST: Final = re.compile(r"^[^A-Za-z_]")
_BAD: Final = re.compile(r"[^A-Za-z0-9_]")


class AvroForm(NamedTuple):
    has_meta_data: bool = True
    """Properties that only Connect knows are written and read."""
    is_enhanced: bool = False
    """Enums stay enums, and unions name their branches in full."""
    scrubs_names: bool = False
    allows_optional_keys: bool = False


def scrubbed(name: str) -> str:
    """Letters, digits and underscores: a name that Avro takes."""
    made = _BAD.sub("_", name)
    return "_" + made if _BAD_FIRST.match(made) else made


def is_string_map(schema: Schema, form: AvroForm) -> bool:
    return (
        schema.keys is not None
        and schema.keys.type is Type.STRING
        and (form.allows_optional_keys or not schema.keys.is_optional)
    )


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name == UNION_NAME


def is_enum(schema: Schema, form: AvroForm) -> bool:
    return schema.type is Type.STRING and form.is_enhanced and ENUM_NAME in schema.parameters


def to_avro(schema: Schema, form: AvroForm) -> str:
    """The text of the schema. DataError."""
    try:
        return json.dumps(_Writing(form).schema(schema))
    except RecursionError:
        raise DataError("the schema is nested too deeply") from None


class _Writing:
    def __init__(self, form: AvroForm) -> None:
        self._form = form
        self._unnamed = 0
        self._entries = 0
        self._known: dict[str, Schema] = {}

    def schema(self, schema: Schema) -> Any:
        if is_union(schema):
            branches = [self.schema(field.schema.required()) for field in schema.fields]
            return ["null", *branches] if schema.is_optional else branches
        said = self._base(schema)
        if isinstance(said, dict):
            self._add_properties(schema, said)
            if list(said) == ["type"]:
                said = said["type"]
        if not schema.is_optional:
            return said
        return ["null", said] if schema.default is None else [said, "null"]

    def _base(self, schema: Schema) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        if schema.type is Type.ARRAY:
            return {"type": "array", "items": self.schema(items_of(schema))}
        if schema.type is Type.MAP:
            return self._map(schema)
        if is_enum(schema, self._form):
            return self._enum(schema)
        said: dict[str, Any] = {"type": SCALARS[schema.type]}
        if schema.name == DECIMAL_NAME:
            said |= {"scale": scale_of(schema), "precision": _precision(schema)}
        elif schema.type is Type.BYTES and FIXED_SIZE in schema.parameters:
            name, space = self._names(schema)
            size = int(schema.parameters[FIXED_SIZE])
            said = {"type": "fixed", "name": name, **({"namespace": space} if space else {}), "size": size}
        return said

    def _map(self, schema: Schema) -> Any:
        if is_string_map(schema, self._form):
            return {"type": "map", "values": self.schema(items_of(schema))}
        if schema.name is not None:
            name, space = self._names(schema)
        else:
            self._entries += 1
            name, space = ENTRY + (str(self._entries) if self._entries > 1 else ""), NAMESPACE
        if schema.keys is None:
            raise DataError("a map without a schema of its keys has no form in Avro")
        fields = [self._field("key", schema.keys), self._field("value", items_of(schema))]
        entry: dict[str, Any] = {"type": "record", "name": name, "namespace": space, "fields": fields}
        if name != ENTRY or space != NAMESPACE:
            entry[INTERNAL_TYPE] = ENTRY
        return {"type": "array", "items": entry}

    def _enum(self, schema: Schema) -> Any:
        name, space = _split(schema.parameters[ENUM_NAME])
        symbols = [
            symbol
            for key, symbol in schema.parameters.items()
            if key.startswith(ENUM_SYMBOL) and key != ENUM_NAME
        ]
        return {"type": "enum", "name": name, **({"namespace": space} if space else {}), "symbols": symbols}

    def _record(self, schema: Schema) -> Any:
        name, space = self._names(schema)
        full = f"{space}.{name}" if space else name
        known = self._known.get(full)
        if known is not None and known.required() == schema.required():
            return full
        self._known[full] = schema
        said: dict[str, Any] = {"type": "record", "name": name}
        if space:
            said["namespace"] = space
        doc = schema.parameters.get(RECORD_DOC)
        if doc is not None:
            said["doc"] = doc
        said["fields"] = [self._field(field.name, field.schema) for field in schema.fields]
        return said

    def _field(self, name: str, schema: Schema) -> dict[str, Any]:
        said: dict[str, Any] = {"name": self._clean(name), "type": self.schema(schema)}
        if schema.doc is not None:
            said["doc"] = schema.doc
        if schema.default is not None:
            said["default"] = default_to_avro(schema, schema.default, self._form)
        elif schema.is_optional:
            said["default"] = None
        return said

    def _names(self, schema: Schema) -> tuple[str, str]:
        if schema.name is None:
            self._unnamed += 1
            return DEFAULT_NAME + (str(self._unnamed) if self._unnamed > 1 else ""), NAMESPACE
        name, space = _split(schema.name)
        if self._form.scrubs_names:
            return scrubbed(name), ".".join(map(scrubbed, space.split("."))) if space else ""
        return name, space

    def _clean(self, name: str) -> str:
        return scrubbed(name) if self._form.scrubs_names else name

    def _add_properties(self, schema: Schema, said: dict[str, Any]) -> None:
        if self._form.has_meta_data:
            if schema.doc is not None:
                said[DOC] = schema.doc
            if schema.version is not None:
                said[VERSION] = schema.version
            if schema.parameters:
                said[PARAMETERS] = dict(schema.parameters)
            if schema.default is not None:
                said[DEFAULT] = default_to_avro(schema, schema.default, self._form)
            if schema.name is not None:
                said[NAME] = schema.name
            if schema.type in (Type.INT8, Type.INT16):
                said[TYPE] = str(schema.type)
        if schema.name == DECIMAL_NAME:
            if 0 <= scale_of(schema) <= _precision(schema):
                said["logicalType"] = "decimal"
        elif schema.name is not None and schema.name in _LOGICAL_TYPES:
            said["logicalType"] = _LOGICAL_TYPES[schema.name]


def items_of(schema: Schema) -> Schema:
    if schema.items is None:
        raise DataError(f"an {schema.type.name} without a schema of what is in it has no form in Avro")
    return schema.items


def _precision(schema: Schema) -> int:
    try:
        return int(schema.parameters.get(PRECISION, DEFAULT_PRECISION))
    except ValueError:
        raise DataError(
            "Invalid precision parameter found in Decimal schema: " + schema.parameters[PRECISION]
        ) from None


def _split(full: str) -> tuple[str, str]:
    space, _, name = full.rpartition(".")
    return name, space


def default_to_avro(schema: Schema, value: Any, form: AvroForm) -> Any:
    """In the form of JSON that defaults have: bytes are text of the characters 0 to 255."""
    if value is None:
        return None
    logical = LOGICAL.get(schema.name or "")
    if logical is not None:
        value = logical.to_base(schema, value)
    if schema.type is Type.BYTES:
        return bytes(value).decode("latin-1")
    if schema.type is Type.ARRAY:
        return [default_to_avro(items_of(schema), each, form) for each in value]
    if schema.type is Type.MAP:
        pairs = [(key, default_to_avro(items_of(schema), each, form)) for key, each in value.items()]
        if is_string_map(schema, form):
            return dict(pairs)
        assert schema.keys is not None
        return [{"key": default_to_avro(schema.keys, key, form), "value": each} for key, each in pairs]
    if schema.type is Type.STRUCT:
        return {field.name: default_to_avro(field.schema, value[field.name], form) for field in schema.fields}
    return value
