"""JSON files in the forms of Kafka's tools: what is asked of them is checked, and said in one sentence where it is not so."""

import json
from typing import Any

from penstock.client.errors import UserError

SUPPORTED_VERSION = 1


def parse_document(text: str) -> dict[str, Any]:
    """A JSON object whose version, if it names one, is 1."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError("The input string is not a valid JSON") from None
    if not isinstance(document, dict):
        raise UserError("Expected JSON object, received something else")
    version = document.get("version", SUPPORTED_VERSION)
    if version != SUPPORTED_VERSION:
        raise UserError(f"Not supported version field value {version}")
    return document


def entries(document: dict[str, Any], name: str, *, of: str) -> list[dict[str, Any]]:
    """The list of objects under a name; `of` says what an object has."""
    found = document[name]
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UserError(f"the {name} field must be a list of objects with {of}")
    return found


def field(entry: dict[str, Any], name: str, kind: type) -> Any:
    if name not in entry:
        raise UserError(f"No such field exists: `{name}`")
    value = entry[name]
    if not _is(value, kind):
        raise UserError(f"the field `{name}` must be {_word(kind)}, not {json.dumps(value)}")
    return value


def list_field(entry: dict[str, Any], name: str, kind: type) -> list[Any]:
    values = field(entry, name, list)
    for value in values:
        if not _is(value, kind):
            raise UserError(f"the field `{name}` must hold {_word(kind)} each, not {json.dumps(value)}")
    return list(values)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _word(kind: type) -> str:
    return {str: "text", int: "a number", list: "a list"}[kind]
