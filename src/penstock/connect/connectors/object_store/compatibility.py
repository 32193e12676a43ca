"""Whether a record with another schema begins a new file, and how it becomes one of the file's: `schema.compatibility`."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError

NONE, BACKWARD, FORWARD, FULL = "NONE", "BACKWARD", "FORWARD", "FULL"
_NUMBERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def begins_file(mode: str, schema: Schema | None, current: Schema | None) -> bool:
    """DataError where it cannot be told."""
    if schema is current or schema == current:
        return False
    if mode == NONE:
        return True
    if schema is None or current is None:
        raise DataError("records with a schema and without one do not go together with schema.compatibility")
    if schema.version is None or current.version is None:
        raise DataError(f"schema.compatibility={mode} needs schemas with versions")
    return schema.version < current.version if mode == FORWARD else schema.version > current.version


def projected(schema: Schema | None, value: Any, target: Schema | None) -> Any:
    """The value as one of the target. DataError."""
    if schema is None or target is None or value is None or schema is target or schema == target:
        return value
    if target.type is Type.STRUCT and schema.type is Type.STRUCT:
        return Struct.trusted(target, [_field(schema, value, field) for field in target.fields])
    if target.type is schema.type:
        return _entries(schema, value, target)
    is_number = target.type in _NUMBERS and schema.type in _NUMBERS
    if is_number and _NUMBERS.index(schema.type) < _NUMBERS.index(target.type):
        return value if target.type in INTEGER_BITS else float(value)
    raise DataError(f"{schema.type} does not become {target.type}")


def _field(schema: Schema, value: Struct, field: Any) -> Any:
    found = schema.field(field.name)
    if found is not None:
        given = projected(found.schema, value.values[found.index], field.schema)
        if given is not None:
            return given
    if field.schema.default is None and not field.schema.is_optional:
        raise DataError(
            f"the field {field.name} has no value in the older schema and no default in the file's"
        )
    return field.schema.default


def _entries(schema: Schema, value: Any, target: Schema) -> Any:
    if schema.items is None or target.items is None:
        return value
    if target.type is Type.ARRAY:
        return [projected(schema.items, each, target.items) for each in value]
    return {name: projected(schema.items, each, target.items) for name, each in value.items()}
