from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.schemas import values
from penstock.schemas.json_schema.parsing import parse
from penstock.schemas.json_schema.values import JsonCodec, codec_of
from penstock.schemas.model import InvalidValue


def _codec(schema: Any) -> JsonCodec:
    return codec_of(parse(json.dumps(schema), (), {}))


def test_the_codec_is_found_by_the_kind() -> None:
    codec = values.codec_of(parse('{"type":"object"}', (), {}))
    assert codec.encode({"a": [1, 2.5, None, "é"]}) == '{"a":[1,2.5,null,"é"]}'.encode()


@pytest.mark.parametrize(
    "value", [None, True, 1.5, "x", [], {}, 2**63, 2**64, -(10**30), {"a": 10**40, "b": "é"}]
)
def test_a_value_comes_back(value: Any) -> None:
    codec = _codec(True)
    assert codec.decode(codec.encode(value)) == value
    assert codec.decode(memoryview(codec.encode(value))) == value


def test_a_mistake_is_told_with_its_place() -> None:
    codec = _codec({"properties": {"a": {"items": {"type": "string"}}}})
    with pytest.raises(InvalidValue, match=r'^\$\.a\[1\]: 3 is not of type "string"$'):
        codec.encode({"a": ["x", 3]})
    with pytest.raises(InvalidValue, match=r"^\$\.a\[0\]: "):
        codec.decode(b'{"a":[null]}', validate=True)
    assert codec.decode(b'{"a":[null]}') == {"a": [None]}


def test_a_long_mistake_is_told_in_short() -> None:
    with pytest.raises(InvalidValue) as error:
        _codec({"type": "null"}).encode("x" * 100_000)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {1, 2}}, b"bytes", "\ud800", {1: 2}])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue):
        _codec(True).encode(value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"nothing", b"\xff", b"NaN", b"[1234567890123456789012,NaN]", b"1 2"]
)
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidValue, match="it is not JSON"):
        _codec(True).decode(data)


def test_a_mistake_in_a_plain_alternative_is_told() -> None:
    codec = _codec({"oneOf": [{"type": "null"}, {"properties": {"a": {"type": "string"}}, "type": "object"}]})
    with pytest.raises(InvalidValue, match="not valid under any of the schemas"):
        codec.encode({"a": {"b": {"c": {"d": {"e": 1}}}}})
