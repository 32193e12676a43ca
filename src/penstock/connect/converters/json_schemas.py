"""Connect's schemas as JSON, in the form that stands beside each payload.

{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false,"name":"order"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.converters.json_reading import reader_of
from penstock.connect.converters.json_writing import Form, writer_of
from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError, SchemaError

_SCALARS: Final[Mapping[str, Type]] = {
    str(each): each for each in Type if each not in (Type.ARRAY, Type.MAP, Type.STRUCT)
}


def schema_to_json(schema: Schema, form: Form) -> dict[str, Any]:
    said: dict[str, Any] = {"type": str(schema.type)}
    if schema.type is Type.ARRAY:
        said["items"] = _inner(schema.items, form)
    elif schema.type is Type.MAP:
        said["keys"] = _inner(schema.keys, form)
        said["values"] = _inner(schema.items, form)
    elif schema.type is Type.STRUCT:
        said["fields"] = [
            {**schema_to_json(field.schema, form), "field": field.name} for field in schema.fields
        ]
    said["optional"] = schema.is_optional
    if schema.name is not None:
        said["name"] = schema.name
    if schema.version is not None:
        said["version"] = schema.version
    if schema.doc is not None:
        said["doc"] = schema.doc
    if schema.parameters:
        said["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        said["default"] = writer_of(schema, form)(schema.default)
    return said


def _inner(schema: Schema | None, form: Form) -> dict[str, Any] | None:
    return None if schema is None else schema_to_json(schema, form)


def schema_from_json(said: Any, *, replaces_null: bool = True) -> Schema | None:
    """DataError, Rounded."""
    if said is None:
        return None
    type_ = said.get("type") if isinstance(said, dict) else None
    if not isinstance(type_, str):
        raise DataError("Schema must contain 'type' field")
    made = _bare(type_, said, replaces_null)
    more: dict[str, Any] = {"is_optional": said.get("optional") is True}
    for name in ("name", "doc"):
        if isinstance(said.get(name), str):
            more[name] = said[name]
    version = said.get("version")
    if isinstance(version, int) and not isinstance(version, bool):
        more["version"] = version
    parameters = said.get("parameters")
    if isinstance(parameters, dict):
        if not all(isinstance(each, str) for each in parameters.values()):
            raise DataError("Schema parameters must have string values.")
        more["parameters"] = parameters
    made = made.with_(**more)
    if "default" not in said:
        return made
    default = reader_of(made, replaces_null=replaces_null)(said["default"])
    if default is None and not made.is_optional:
        raise SchemaError("Invalid default value")
    return made.with_(default=default)


def _bare(type_: str, said: dict[str, Any], replaces_null: bool) -> Schema:
    def inner(name: str, what: str) -> Schema:
        found = schema_from_json(said.get(name), replaces_null=replaces_null)
        if found is None:
            raise DataError(f"{what} schema did not specify the {name_of[name]} type")
        return found

    name_of = {"items": "element", "keys": "key", "values": "value"}
    if type_ == Type.ARRAY:
        return Schema(Type.ARRAY, items=inner("items", "Array"))
    if type_ == Type.MAP:
        return Schema(Type.MAP, keys=inner("keys", "Map"), items=inner("values", "Map"))
    if type_ != Type.STRUCT:
        if type_ not in _SCALARS:
            raise DataError(f"Unknown schema type: {type_}")
        return Schema(_SCALARS[type_])
    fields = said.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    made = []
    for field in fields:
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_from_json(field, replaces_null=replaces_null)
        assert schema is not None
        made.append((name, schema))
    return Schema(Type.STRUCT, fields=made)
