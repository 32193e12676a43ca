"""The JSON of a large request, read record by record, so that others have their turn in between.

    {"value_schema_id": 7, "records": [{…}, {…}, …]}

One call of a JSON parser would hold the loop, and Python's lock, for as long as 16 MiB take. Whatever is not of this form is
left to the parser all the same: it says what is wrong.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from penstock.rest.produce.turns import Turns

LARGE_BYTES: Final = 512 << 10
RECORDS: Final = "records"

_OPEN: Final = re.compile(rb"\s*\{\s*")
_KEY: Final = re.compile(rb'"([^"\\]*)"\s*:\s*')
_PLAIN: Final = re.compile(rb'(?:"[^"\\]*"|[-+.0-9a-zA-Z]+)')
_LIST: Final = re.compile(rb"\[\s*")
_NEXT: Final = re.compile(rb"\s*([,}\]])\s*")
_OUTSIDE: Final = re.compile(rb'[{}"]')
_IN_STRING: Final = re.compile(rb'["\\]')


class _OtherForm(Exception):
    """Left to the parser."""


async def parsed(data: bytes) -> Any:
    """orjson.JSONDecodeError where it is no JSON."""
    if len(data) < LARGE_BYTES:
        return orjson.loads(data)
    try:
        return await _request(data)
    except (_OtherForm, orjson.JSONDecodeError):
        return orjson.loads(data)


async def _request(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = _behind(_OPEN, data, 0)
    mark = b","
    while mark == b",":
        match = _KEY.match(data, at)
        if match is None:
            raise _OtherForm
        name = match[1].decode()
        if name == RECORDS:
            found[name], at = await _records(data, match.end())
        else:
            end = _value_end(data, match.end())
            found[name], at = orjson.loads(data[match.end() : end]), end
        mark, at = _mark(data, at)
    if mark != b"}" or at != len(data):
        raise _OtherForm
    return found


async def _records(data: bytes, at: int) -> tuple[list[Any], int]:
    at = _behind(_LIST, data, at)
    found: list[Any] = []
    turns = Turns()
    mark = b","
    while mark == b",":
        end = _object_end(data, at)
        found.append(orjson.loads(data[at:end]))
        mark, at = _mark(data, end)
        if turns.is_over():
            await turns.give_way()
    if mark != b"]":
        raise _OtherForm
    return found, at


def _value_end(data: bytes, at: int) -> int:
    if data[at : at + 1] == b"{":
        return _object_end(data, at)
    return _behind(_PLAIN, data, at)


def _object_end(data: bytes, at: int) -> int:
    if data[at : at + 1] != b"{":
        raise _OtherForm
    depth, at = 1, at + 1
    while depth:
        match = _OUTSIDE.search(data, at)
        if match is None:
            raise _OtherForm
        at = match.end()
        mark = match.group()
        if mark == b'"':
            at = _string_end(data, at)
        else:
            depth += 1 if mark == b"{" else -1
    return at


def _string_end(data: bytes, at: int) -> int:
    while True:
        match = _IN_STRING.search(data, at)
        if match is None:
            raise _OtherForm
        if match.group() == b'"':
            return match.end()
        at = match.end() + 1


def _mark(data: bytes, at: int) -> tuple[bytes, int]:
    match = _NEXT.match(data, at)
    if match is None:
        raise _OtherForm
    return match[1], match.end()


def _behind(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    if match is None:
        raise _OtherForm
    return match.end()
