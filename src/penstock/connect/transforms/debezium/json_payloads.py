"""Payloads that are JSON in a string, as structs and arrays; their schemas are inferred."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from penstock.connect.data.schema import (
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    Schema,
    Type,
    array,
)
from penstock.connect.data.structs import Struct

log = logging.getLogger("penstock.connect.transforms")
_INTEGERS: Final = ((31, INT32.optional()), (63, INT64.optional()))
_OPTIONAL_FLOAT64: Final = FLOAT64.optional()
_OPTIONAL_BOOLEAN: Final = BOOLEAN.optional()


class _Unsuitable(Exception):
    pass


class JsonPayloads:
    def __init__(self, *, keeps_nulls: bool, keeps_empty_arrays: bool) -> None:
        self._keeps_nulls = keeps_nulls
        self._keeps_empty_arrays = keeps_empty_arrays

    def expanded(self, name: str, schema: Schema, payload: Any) -> tuple[Schema, Any]:
        """As they are, when they are no JSON object or array; that is told."""
        if payload is None:
            return schema, payload
        try:
            if not isinstance(payload, str) or not payload.startswith(("{", "[")):
                raise _Unsuitable("it is no JSON object or array")
            document = json.loads(payload)
            found = self._schema(name, document)
            if found is None:
                raise _Unsuitable("nothing in it has a type")
            return found, _value(found, document)
        except (_Unsuitable, ValueError, RecursionError) as error:
            log.warning("The payload was not expanded: %s", error)
            return schema, payload

    def _schema(self, name: str | None, node: Any) -> Schema | None:
        """None: it is left out."""
        if isinstance(node, str):
            return OPTIONAL_STRING
        if isinstance(node, bool):
            return _OPTIONAL_BOOLEAN
        if isinstance(node, int):
            fitting = (schema for bits, schema in _INTEGERS if -(1 << bits) <= node < 1 << bits)
            return next(fitting, _OPTIONAL_FLOAT64)
        if isinstance(node, float):
            return _OPTIONAL_FLOAT64
        if isinstance(node, list):
            return self._array(name, node)
        if isinstance(node, dict):
            return self._struct(name, node)
        return OPTIONAL_BYTES if self._keeps_nulls else None

    def _struct(self, name: str | None, node: dict[str, Any]) -> Schema:
        fields = []
        for key, each in node.items():
            schema = self._schema(f"{name}.{key}" if name else key, each)
            if schema is not None:
                fields.append((key, schema))
        return Schema(Type.STRUCT, name=name, fields=fields, is_optional=True)

    def _array(self, name: str | None, node: list[Any]) -> Schema | None:
        if not node:
            return array(OPTIONAL_STRING).optional() if self._keeps_empty_arrays else None
        known = [each for each in node if each is not None]
        if len({_kind(each) for each in known}) > 1:
            raise _Unsuitable("an array has elements of several types")
        if known and isinstance(known[0], dict):
            return array(_merged([self._struct(name, each) for each in known])).optional()
        schemas = [self._schema(None, each) for each in known or [None]]
        if schemas[0] is None:
            raise _Unsuitable("an array has elements without a type")
        if known and not isinstance(known[0], list) and any(schema != schemas[0] for schema in schemas):
            raise _Unsuitable("an array has numbers of several types")
        return array(schemas[0]).optional()


def _kind(node: Any) -> str:
    if isinstance(node, bool):
        return "boolean"
    return "number" if isinstance(node, (int, float)) else type(node).__name__


def _merged(schemas: list[Schema]) -> Schema:
    """All fields that one of them has. What was only null gives way to what has a type. As in Debezium, not optional any more."""
    if all(schema == schemas[0] for schema in schemas):
        return schemas[0]
    fields: dict[str, Schema] = {}
    for schema in schemas:
        for field in schema.fields:
            known = fields.get(field.name)
            if known is None or (known.type is Type.BYTES and field.schema.type is not Type.BYTES):
                fields[field.name] = field.schema
    return Schema(Type.STRUCT, name=schemas[0].name, fields=list(fields.items()))


def _value(schema: Schema, node: Any) -> Any:
    if node is None:
        return None
    if schema.type is Type.STRUCT:
        if not isinstance(node, dict):
            raise _Unsuitable("its parts have several types")
        return Struct.trusted(schema, [_value(field.schema, node.get(field.name)) for field in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        if not isinstance(node, list):
            raise _Unsuitable("its parts have several types")
        return [_value(schema.items, each) for each in node]
    return float(node) if schema.type is Type.FLOAT64 else node
