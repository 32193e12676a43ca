"""Whether a value is what a schema says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from penstock.connect.data.logical import logical_of
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.errors import DataError

_PYTHON: Final[Mapping[Type, tuple[type, ...]]] = MappingProxyType({
    Type.INT8: (int,), Type.INT16: (int,), Type.INT32: (int,), Type.INT64: (int,),
    Type.FLOAT32: (float, int), Type.FLOAT64: (float, int), Type.BOOLEAN: (bool,), Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview), Type.ARRAY: (list, tuple), Type.MAP: (dict,),
})  # fmt: skip


def check(schema: Schema, value: Any, *, name: str | None = None) -> None:
    """DataError, with the name of the field where there is one."""
    if value is None:
        if not schema.is_optional and schema.default is None:
            where = f' for field: "{name}"' if name is not None else ""
            raise DataError(f'Invalid value: null used for required field: "{name}", schema type: {schema.type.name}'
                            if name is not None else f"Invalid value: null used for required schema{where}")  # fmt: skip
        return
    logical = logical_of(schema)
    if logical is not None and schema.type is logical.base:
        wrong_date = logical.python is dt.date and isinstance(value, dt.datetime)
        if not isinstance(value, logical.python) or wrong_date:
            raise _wrong(schema, value, name)
        return
    if schema.type is Type.STRUCT:
        _check_struct(schema, value, name)
        return
    if not isinstance(value, _PYTHON[schema.type]) or (
        isinstance(value, bool) and schema.type is not Type.BOOLEAN
    ):
        raise _wrong(schema, value, name)
    checked: Any = value
    bits = INTEGER_BITS.get(schema.type)
    if bits is not None and not -(1 << (bits - 1)) <= checked < 1 << (bits - 1):
        raise DataError(f"{value} does not fit {schema.type.name}{_of(name)}")
    if schema.type is Type.ARRAY and schema.items is not None:
        for each in checked:
            check(schema.items, each, name=name)
    elif schema.type is Type.MAP:
        for key, each in checked.items():
            if schema.keys is not None:
                check(schema.keys, key, name=name)
            if schema.items is not None:
                check(schema.items, each, name=name)


def _check_struct(schema: Schema, value: Any, name: str | None) -> None:
    from penstock.connect.data.structs import Struct

    if not isinstance(value, Struct):
        raise _wrong(schema, value, name)
    if value.schema is not schema and value.schema != schema:
        raise DataError(f"Struct schemas do not match{_of(name)}.")
    value.check()


def _wrong(schema: Schema, value: Any, name: str | None) -> DataError:
    return DataError(
        f"Invalid Python object for schema {schema.name or ''} with type {schema.type.name}: "
        f"{type(value).__name__}{_of(name)}".replace("schema  with", "schema with")
    )


def _of(name: str | None) -> str:
    return f' for field: "{name}"' if name is not None else ""
