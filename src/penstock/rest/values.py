"""The forms in which keys and values stand in JSON: base64, JSON, text. Those with schemas are in `registry_values`.

Errors are HttpError, with Kafka REST's words.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final

import orjson

from penstock.rest import errors
from penstock.web.errors import HttpError

BINARY, JSON, STRING, AVRO, JSONSCHEMA, PROTOBUF = (
    "BINARY",
    "JSON",
    "STRING",
    "AVRO",
    "JSONSCHEMA",
    "PROTOBUF",
)
WITH_SCHEMA: Final = frozenset({AVRO, JSONSCHEMA, PROTOBUF})
FORMATS: Final = (BINARY, JSON, STRING, AVRO, JSONSCHEMA, PROTOBUF)
MAX_SHOWN_CHARS: Final = 100

Write = Callable[[Any], bytes | None]
Read = Callable[[bytes | None], Any]


def write_binary(data: Any) -> bytes | None:
    if data is None:
        return None
    if not isinstance(data, str):
        raise HttpError(400, f"Bad Request: data={shown(data)} is not a base64 string.")
    try:
        # The padding may be left out.
        return binascii.a2b_base64(data + "=" * (-len(data) % 4), strict_mode=True)
    except ValueError:
        raise HttpError(400, f"Bad Request: data={shown(data)} is not a valid base64 string.") from None


def write_json(data: Any) -> bytes | None:
    try:
        return None if data is None else orjson.dumps(data)
    except orjson.JSONEncodeError:
        raise errors.conversion_failed("it is nested too deeply") from None


def write_string(data: Any) -> bytes | None:
    if data is None:
        return None
    if not isinstance(data, str):
        raise HttpError(400, f"Bad Request: data={shown(data)} is not a string.")
    return data.encode()


WRITES: Final[dict[str, Write]] = {BINARY: write_binary, JSON: write_json, STRING: write_string}


def read_binary(data: bytes | None) -> str | None:
    return None if data is None else binascii.b2a_base64(data, newline=False).decode()


def read_json(data: bytes | None) -> Any:
    """As it stands in the record, numbers of any length too. ValueError where it is no JSON."""
    if data is None:
        return None
    orjson.loads(data)
    return orjson.Fragment(data)


READS: Final[dict[str, Read]] = {BINARY: read_binary, JSON: read_json}


def shown(data: Any) -> str:
    try:
        text = orjson.dumps(data).decode()
    except orjson.JSONEncodeError:
        return "…"  # nested too deeply
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"


def no_registry() -> HttpError:
    return errors.invalid_payload("Schema Registry must be configured when using schemas.")
