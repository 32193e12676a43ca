"""Connect's schemas as JSON Schema and back, by the rules of Confluent's converter.

    INT64        {"type":"integer","connect.type":"int64"}
    optional     {"oneOf":[{"type":"null"}, X]}
    struct       {"type":"object","title":name,"properties":{"id":{…,"connect.index":0}}}
    map          {"type":"object","additionalProperties":X,"connect.type":"map"}; an array of objects {key, value} else
    union        a struct io.confluent.connect.json.OneOf with a field for each alternative

What Connect has no form of (conditions, `not`, patterns) is left out: values are then read by what is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.converters.json_reading import reader_of
from penstock.connect.converters.json_writing import Form, dumped, writer_of
from penstock.connect.data.logical import DATE, DECIMAL_NAME, TIME, TIMESTAMP, decimal
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.errors import DataError

UNION_NAME: Final = "io.confluent.connect.json.OneOf"
UNION_FIELD: Final = UNION_NAME + ".field."
MAX_DEPTH: Final = 100
_INDEX, _TYPE, _VERSION = "connect.index", "connect.type", "connect.version"
_DOC, _PARAMETERS = "connect.doc", "connect.parameters"
_TYPES: Final[Mapping[Type, str]] = {
    Type.INT8: "int8", Type.INT16: "int16", Type.INT32: "int32", Type.INT64: "int64", Type.FLOAT32: "float32",
    Type.FLOAT64: "float64", Type.BYTES: "bytes", Type.MAP: "map",
}  # fmt: skip
_BY_NAME: Final = {name: type_ for type_, name in _TYPES.items()}
_NULL: Final = {"type": "null"}


class JsonSchemaForm(NamedTuple):
    has_meta_data: bool = True
    allows_more: bool = True
    """Properties that the schema does not name."""
    is_optional_unless_required: bool = False
    is_numeric: bool = False
    keeps_null: bool = False
    """Where there is a default."""

    @property
    def form(self) -> Form:
        return Form(self.is_numeric, not self.keeps_null)


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name == UNION_NAME


def is_string_map(schema: Schema) -> bool:
    return schema.keys is not None and schema.keys.type is Type.STRING and not schema.keys.is_optional


def to_json_schema(schema: Schema, form: JsonSchemaForm) -> str:
    try:
        return dumped(_said(schema, form, None)).decode()
    except RecursionError:
        raise DataError("the schema is nested too deeply") from None


def _said(schema: Schema, form: JsonSchemaForm, index: int | None) -> dict[str, Any]:
    if is_union(schema):
        branches = [_said(field.schema.required(), form, field.index) for field in schema.fields]
        said: dict[str, Any] = {"oneOf": [_NULL, *branches] if schema.is_optional else branches}
        return said if index is None else {_INDEX: index, **said}
    said = _base(schema, form)
    if form.has_meta_data:
        if schema.type in _TYPES and _TYPE not in said:
            said[_TYPE] = _TYPES[schema.type]
        if schema.name is not None:
            said["title"] = schema.name
        if schema.version is not None:
            said[_VERSION] = schema.version
        if schema.doc is not None:
            said[_DOC] = schema.doc
        if schema.parameters:
            said[_PARAMETERS] = dict(schema.parameters)
    elif schema.name is not None:
        said["title"] = schema.name
    default = {} if schema.default is None else {"default": writer_of(schema, form.form)(schema.default)}
    if schema.is_optional:
        said = {"oneOf": [_NULL, said], **default}
    else:
        said |= default
    return said if index is None else {**said, _INDEX: index}


def _base(schema: Schema, form: JsonSchemaForm) -> dict[str, Any]:
    if schema.name == DECIMAL_NAME and form.is_numeric:
        return {"type": "number"}
    if schema.type in INTEGER_BITS:
        return {"type": "integer"}
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return {"type": "number"}
    if schema.type is Type.BOOLEAN:
        return {"type": "boolean"}
    if schema.type in (Type.STRING, Type.BYTES):
        return {"type": "string"}
    if schema.type is Type.ARRAY and schema.items is not None:
        return {"type": "array", "items": _said(schema.items, form, None)}
    if schema.type is Type.STRUCT:
        properties = {field.name: _said(field.schema, form, field.index) for field in schema.fields}
        said: dict[str, Any] = {"type": "object", "properties": properties}
        required = [field.name for field in schema.fields if not field.schema.is_optional]
        if form.is_optional_unless_required and required:
            said["required"] = required
        return said if form.allows_more else {**said, "additionalProperties": False}
    if schema.keys is None or schema.items is None:
        raise DataError(f"an {schema.type.name} without a schema of what is in it has no form in JSON Schema")
    if is_string_map(schema):
        return {"type": "object", "additionalProperties": _said(schema.items, form, None)}
    entry = {"key": _said(schema.keys, form, 0), "value": _said(schema.items, form, 1)}
    return {"type": "array", "items": {"type": "object", "properties": entry}}


def from_json_schema(root: Any, texts: Mapping[str, Any], form: JsonSchemaForm) -> Schema:
    """`texts`: those that it refers to, as JSON, by the name it has for them. DataError."""
    return _Reading(root, texts, form).schema(root)


class _Reading:
    def __init__(self, root: Any, texts: Mapping[str, Any], form: JsonSchemaForm) -> None:
        self._root, self._texts, self._form = root, texts, form
        self._depth = 0

    def schema(self, said: Any, *, is_optional: bool = False) -> Schema:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DataError(
                "the JSON Schema contains itself, or is nested too deeply: Connect has no schema for it"
            )
        try:
            return self._schema(self._led(said), is_optional)
        finally:
            self._depth -= 1

    def _led(self, said: Any) -> dict[str, Any]:
        for _ in range(MAX_DEPTH):
            if not isinstance(said, dict):
                raise DataError("a JSON Schema that is true or false has no form in Connect")
            if "$ref" not in said:
                return said
            said = self._target(str(said["$ref"]))
        raise DataError("the JSON Schema's $refs go around in a circle")

    def _target(self, reference: str) -> Any:
        place, _, path = reference.partition("#")
        found = self._root if not place else self._texts.get(place)
        for part in filter(None, path.split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise DataError(f"the JSON Schema has no {reference}")
        return found

    def _schema(self, said: dict[str, Any], is_optional: bool) -> Schema:
        alternatives = said.get("oneOf") or said.get("anyOf")
        if isinstance(alternatives, list):
            return self._alternatives(said, alternatives, is_optional)
        if isinstance(said.get("allOf"), list):
            return self._all(said, is_optional)
        type_ = said.get("type")
        if isinstance(type_, list):
            others = [each for each in type_ if each != "null"]
            has_null = len(others) < len(type_) or is_optional
            if len(others) == 1:
                return self._schema({**said, "type": others[0]}, has_null)
            return self._alternatives({}, [{**said, "type": each} for each in others], has_null)
        made = self._bare(said, type_)
        return self._with_properties(made, said, is_optional)

    def _with_properties(self, made: Schema, said: dict[str, Any], is_optional: bool) -> Schema:
        more: dict[str, Any] = {"is_optional": is_optional}
        if isinstance(said.get("title"), str):
            more["name"] = said["title"]
        if self._form.has_meta_data:
            if isinstance(said.get(_VERSION), int):
                more["version"] = said[_VERSION]
            doc = said.get(_DOC, said.get("description"))
            if isinstance(doc, str):
                more["doc"] = doc
            parameters = said.get(_PARAMETERS)
            if isinstance(parameters, dict):
                more["parameters"] = {key: str(each) for key, each in parameters.items()}
        return self._with_default(made.with_(**more), said)

    def _with_default(self, made: Schema, said: dict[str, Any]) -> Schema:
        if said.get("default") is None:
            return made
        return made.with_(default=reader_of(made, replaces_null=True)(said["default"]))

    def _alternatives(self, said: dict[str, Any], alternatives: list[Any], is_optional: bool) -> Schema:
        others = [
            each for each in alternatives if not (isinstance(each, dict) and each.get("type") == "null")
        ]
        has_null = is_optional or len(others) < len(alternatives)
        if len(others) == 1:
            return self._with_default(self.schema(others[0], is_optional=has_null), said)
        fields = [
            (UNION_FIELD + str(place), self.schema(each, is_optional=True))
            for place, each in enumerate(others)
        ]
        return Schema(Type.STRUCT, name=UNION_NAME, fields=fields, is_optional=has_null)

    def _all(self, said: dict[str, Any], is_optional: bool) -> Schema:
        """The properties of all together; of others the first that says a type."""
        merged: dict[str, Any] = {key: each for key, each in said.items() if key != "allOf"}
        properties: dict[str, Any] = dict(said.get("properties") or {})
        required = list(said.get("required") or ())
        for each in map(self._led, said["allOf"]):
            properties |= each.get("properties") or {}
            required += each.get("required") or []
            for key, value in each.items():
                merged.setdefault(key, value)
        if properties:
            merged |= {"type": "object", "properties": properties, "required": required}
        return self._schema(merged, is_optional)

    def _bare(self, said: dict[str, Any], type_: Any) -> Schema:
        said_type = said.get(_TYPE)
        if said.get("title") == DECIMAL_NAME and type_ in ("number", "string"):
            parameters = said.get(_PARAMETERS)
            scale = parameters.get("scale", "0") if isinstance(parameters, dict) else "0"
            return decimal(int(scale) if str(scale).lstrip("-").isdigit() else 0)
        if type_ == "integer":
            for each in (DATE, TIME, TIMESTAMP):
                if said.get("title") == each.name:
                    return each
            return Schema(_BY_NAME.get(said_type or "", Type.INT64))
        if type_ == "number":
            return Schema(_BY_NAME.get(said_type or "", Type.FLOAT64))
        if type_ == "boolean":
            return Schema(Type.BOOLEAN)
        if type_ == "string" or (type_ is None and "enum" in said):
            return Schema(Type.BYTES if said_type == "bytes" else Type.STRING)
        if type_ == "array":
            return self._array(said, said_type)
        if type_ == "object" or "properties" in said:
            return self._object(said, said_type)
        raise DataError(f"Unsupported schema type {type_ or json.dumps(said)[:100]}")

    def _array(self, said: dict[str, Any], said_type: Any) -> Schema:
        if "items" not in said:
            raise DataError("Array schema did not specify the items type")
        if said_type == "map":
            entry = self.schema(said["items"])
            key, value = entry.field("key"), entry.field("value")
            if key is None or value is None:
                raise DataError("a map that is an array has objects of key and value")
            return Schema(Type.MAP, keys=key.schema, items=value.schema)
        return Schema(Type.ARRAY, items=self.schema(said["items"]))

    def _object(self, said: dict[str, Any], said_type: Any) -> Schema:
        more = said.get("additionalProperties")
        properties = said.get("properties")
        if said_type == "map" or (not isinstance(properties, dict) and isinstance(more, dict)):
            items = self.schema(more) if isinstance(more, dict) else Schema(Type.STRING, is_optional=True)
            return Schema(Type.MAP, keys=Schema(Type.STRING), items=items)
        required = said.get("required") or []
        fields = []
        for place, (name, each) in enumerate((properties or {}).items()):
            is_left_out = self._form.is_optional_unless_required and name not in required
            index = each.get(_INDEX, place) if isinstance(each, dict) else place
            fields.append((index, place, name, self.schema(each, is_optional=is_left_out)))
        fields.sort(key=lambda each: each[:2])
        return Schema(Type.STRUCT, fields=[(name, schema) for _, _, name, schema in fields])
