"""A record as text: by a template such as `%p/%o %k: %v\\n`, or as one JSON object."""

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from penstock.cli.verbs.output import json_line

Decoded = Mapping[str, Any]
"""What the key and the value say, by "key" and "value", where they were read with a schema."""
NOTHING: Final[Decoded] = MappingProxyType({})

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class RecordFormat:
    """The template is taken apart once; a percent sign itself is %%."""

    def __init__(self, template: str) -> None:
        self._parts = list(_parts(template))

    def format(self, record: Any, decoded: Decoded = NOTHING) -> bytes:
        texts = {_LETTERS[name]: compact(value) for name, value in decoded.items()}
        return b"".join(
            part if isinstance(part, bytes) else texts[part] if part in texts else _FIELDS[part](record)
            for part in self._parts
        )


def _parts(template: str) -> Any:
    position = 0
    while position < len(template):
        character = template[position]
        following = template[position + 1 : position + 2]
        if character == "%" and following in _FIELDS:
            yield following
            position += 2
        elif character == "%" and following == "%":
            yield b"%"
            position += 2
        elif character == "\\" and following in ESCAPES:
            yield ESCAPES[following]
            position += 2
        else:
            yield character.encode()
            position += 1


def _headers(record: Any) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers() or ())


_FIELDS: dict[str, Any] = {
    "v": lambda record: b"null" if record.value() is None else record.value(),
    "k": lambda record: b"null" if record.key() is None else record.key(),
    "t": lambda record: record.topic().encode(),
    "p": lambda record: b"%d" % record.partition(),
    "o": lambda record: b"%d" % record.offset(),
    "T": lambda record: b"%d" % record.timestamp()[1],
    "h": _headers,
}


_LETTERS: Final = {"key": "k", "value": "v"}


def compact(value: Any) -> bytes:
    from penstock.client.json_lines import json_line as without_spaces

    return without_spaces(value)


def as_json(record: Any, decoded: Decoded = NOTHING) -> bytes:
    """One line. What is not UTF-8 is given in base64, under a name that says so; what was decoded as what it says."""
    shown: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": record.timestamp()[1],
        **part("key", record.key(), decoded),
        **part("value", record.value(), decoded),
    }
    headers = record.headers()
    if headers:
        shown["headers"] = [{"name": name, **field("value", value)} for name, value in headers]
    return json_line(shown)


def part(name: str, data: bytes | None, decoded: Decoded) -> dict[str, Any]:
    return {name: decoded[name]} if name in decoded else field(name, data)


def field(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
