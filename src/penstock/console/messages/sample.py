"""A value that fits a schema ◇, as a beginning for who writes one by hand: every field is there, with its default or a
plain value.

>>> sample_of_avro({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
{'n': 0}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from penstock.schemas.model import AVRO, JSON, Schema

MAX_DEPTH: Final = 8
_AVRO: Final[Mapping[str, Any]] = {
    "null": None, "boolean": False, "int": 0, "long": 0, "float": 0.0, "double": 0.0, "bytes": "", "string": "",
}  # fmt: skip
_JSON: Final[Mapping[str, Any]] = {"null": None, "boolean": False, "integer": 0, "number": 0, "string": ""}


def sample(schema: Schema) -> Any:
    """In the form that is written: unions of Avro with the names of their branches."""
    if schema.kind == AVRO:
        return sample_of_avro(json.loads(schema.text))
    if schema.kind == JSON:
        document = json.loads(schema.text)
        return sample_of_json_schema(document, document)
    return _of_protobuf(schema)


def sample_of_avro(schema: Any, known: dict[str, Any] | None = None, depth: int = 0) -> Any:
    known = {} if known is None else known
    if isinstance(schema, list):
        first = schema[0] if schema else "null"
        if first == "null" or not schema or (depth > 2 and "null" in schema):
            return None
        return {_avro_name(first, known): sample_of_avro(first, known, depth)}
    if isinstance(schema, str):
        if schema in _AVRO:
            return _AVRO[schema]
        found = known.get(schema) or known.get(schema.rpartition(".")[2])
        return sample_of_avro(found, known, depth + 1) if found is not None and depth < MAX_DEPTH else {}
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {}
    kind = schema.get("type")
    if "name" in schema:
        known[schema["name"]] = schema
        if schema.get("namespace"):
            known[f"{schema['namespace']}.{schema['name']}"] = schema
    if kind in ("record", "error"):
        return {
            field["name"]: field["default"] if _is_plain_default(field) else sample_of_avro(field["type"], known, depth + 1)
            for field in schema.get("fields", ())
        }  # fmt: skip
    if kind == "enum":
        return schema.get("default") or (schema.get("symbols") or [""])[0]
    if kind == "array":
        return []
    if kind == "map":
        return {}
    if kind == "fixed":
        return "\0" * int(schema.get("size", 0))
    return sample_of_avro(kind, known, depth)


def _is_plain_default(field: Mapping[str, Any]) -> bool:
    """The default of a union is written without the name of its branch, and would not fit as it stands."""
    return "default" in field and (not isinstance(field["type"], list) or field["default"] is None)


def _avro_name(schema: Any, known: Mapping[str, Any]) -> str:
    if isinstance(schema, str):
        found = known.get(schema)
        return _avro_name(found, known) if found is not None else schema
    name = schema.get("name")
    if name is None:
        return str(schema.get("type"))
    return f"{schema['namespace']}.{name}" if schema.get("namespace") else str(name)


def sample_of_json_schema(schema: Any, root: Any, depth: int = 0) -> Any:
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {}
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("examples"):
        return schema["examples"][0]
    if schema.get("enum"):
        return schema["enum"][0]
    if isinstance(schema.get("$ref"), str):
        return sample_of_json_schema(_referred(schema["$ref"], root), root, depth + 1)
    for name in ("oneOf", "anyOf", "allOf"):
        if schema.get(name):
            return sample_of_json_schema(schema[name][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind == "object":
        return {
            name: sample_of_json_schema(each, root, depth + 1)
            for name, each in schema.get("properties", {}).items()
        }
    if kind == "array":
        return []
    if kind in ("integer", "number") and "minimum" in schema:
        return schema["minimum"]
    return _JSON.get(kind, "")


def _referred(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        return {}
    found = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            found = (
                found.get(step.replace("~1", "/").replace("~0", "~"), {})
                if isinstance(found, Mapping)
                else {}
            )
    return found


def _of_protobuf(schema: Any) -> Any:
    return _of_message(schema.pool.FindMessageTypeByName(schema.full_name), ())


def _of_message(descriptor: Any, above: tuple[str, ...]) -> Any:
    if descriptor.full_name == "google.protobuf.Timestamp":
        return "1970-01-01T00:00:00Z"
    found: dict[str, Any] = {}
    for field in descriptor.fields:
        if field.containing_oneof is not None and field is not field.containing_oneof.fields[0]:
            continue
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            found[field.name] = {}
        elif field.is_repeated:
            found[field.name] = []
        elif message is not None:
            if _is_left_out(message.full_name, (*above, descriptor.full_name)):
                continue
            found[field.name] = _of_message(message, (*above, descriptor.full_name))
        elif field.enum_type is not None:
            found[field.name] = field.enum_type.values[0].name
        else:
            default = field.default_value
            found[field.name] = "" if isinstance(default, bytes) else default
    return found


def _is_left_out(name: str, above: tuple[str, ...]) -> bool:
    """What has itself as a part would never end; most of Google's own messages have a JSON of their own."""
    return name in above or (name.startswith("google.protobuf.") and name != "google.protobuf.Timestamp")
