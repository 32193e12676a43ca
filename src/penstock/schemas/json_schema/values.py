"""Values by a JSON Schema: checked, then compact JSON.

The validator is compiled once for each codec. `is_valid` remembers what it has seen of schemas that contain themselves, so that
its time is bounded by the value. The search for the place of a mistake does not, and where alternatives (`anyOf`, `oneOf`)
contain themselves it could go on for hours. There the message says only that no alternative fits.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import jsonschema_rs
import orjson

from penstock.schemas.json_schema.alternatives import can_be_explained
from penstock.schemas.json_schema.parsing import JsonSchema, compiled
from penstock.schemas.model import InvalidValue, Schema

MAX_REASON_CHARACTERS: Final = 300
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
"""May be one that orjson would round. In a string it costs a little time."""
MAX_SHALLOW_DEPTH: Final = 4


class JsonCodec:
    def __init__(self, schema: JsonSchema) -> None:
        self._validator = compiled(schema.documents)
        self._can_explain = can_be_explained(schema.documents)

    def encode(self, value: Any) -> bytes:
        data = _printed(value)
        self._check(value)
        return data

    def decode(self, data: bytes | memoryview, *, validate: bool = False) -> Any:
        """What another program has written is not checked unless it is asked for, as Confluent's deserializer does."""
        value = _read(data)
        if validate:
            self._check(value)
        return value

    def _check(self, value: Any) -> None:
        try:
            if self._validator.is_valid(value):
                return
        except ValueError as error:  # nested too deeply, or nothing that JSON has
            raise InvalidValue(_short(str(error))) from None
        if not self._can_explain and _depth(value) > MAX_SHALLOW_DEPTH:
            raise InvalidValue("$: it fits none of the schema's alternatives")
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            raise InvalidValue(f"{_place(error.instance_path)}: {_short(error.message)}") from None
        raise InvalidValue("$: it does not fit the schema")


def codec_of(schema: Schema) -> JsonCodec:
    if not isinstance(schema, JsonSchema):
        raise TypeError(f"a schema of {schema.kind} has another codec")
    return JsonCodec(schema)


def _printed(value: Any) -> bytes:
    try:
        data = orjson.dumps(value)
        if b"null" in data:
            json.dumps(value, allow_nan=False)  # orjson writes null for what is no number
    except (TypeError, ValueError) as error:
        return _printed_slowly(value, error)
    return data


def _printed_slowly(value: Any, reason: Exception) -> bytes:
    """Whole numbers of more than 64 bits."""
    if "64-bit" not in str(reason):
        raise InvalidValue(f"$: it is not JSON: {_short(str(reason))}") from None
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"$: it is not JSON: {_short(str(error))}") from None


def _read(data: bytes | memoryview) -> Any:
    try:
        if _LONG_NUMBER.search(data):
            return json.loads(bytes(data), parse_constant=_no_number)
        return orjson.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"it is not JSON: {_short(str(error))}") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _depth(value: Any) -> int:
    """Counted no further than is asked for."""
    level, depth = [value], 0
    while level and depth <= MAX_SHALLOW_DEPTH:
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
    return depth


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    if len(one_line) <= MAX_REASON_CHARACTERS:
        return one_line
    return f"{one_line[: MAX_REASON_CHARACTERS // 2]} … {one_line[-MAX_REASON_CHARACTERS // 2 :]}"
