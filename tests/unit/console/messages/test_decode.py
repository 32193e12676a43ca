"""What bytes are taken for."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import UserError
from penstock.console.access.masking import HIDDEN, Masking, MaskingRule
from penstock.console.messages.decode import Format, PartDecoder, commonest, format_of


def shown(data: bytes | None, form: Format = Format.AUTO) -> tuple[str, str]:
    found = PartDecoder("t", is_key=False, form=form).shown(data)
    return found.kind, found.text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, ("null", "")),
        (b"", ("empty", "")),
        (b'{"a": 1}', ("json", '{"a": 1}')),
        (b" [1]", ("json", " [1]")),
        (b'{"a": ', ("text", '{"a": ')),
        (b"42", ("text", "42")),
        ("caf\u00e9".encode(), ("text", "caf\u00e9")),
        (b"caf\xe9 and a long text around it", ("text", "caf\ufffd and a long text around it")),
        (struct.pack(">q", 42), ("long", "42")),
        (struct.pack(">q", -1), ("long", "-1")),
        (struct.pack(">i", 7), ("integer", "7")),
        (struct.pack(">d", 3.25), ("double", "3.25")),
        (b"\x00\x01\x02", ("hex", "00 01 02")),
        (b"abcd", ("text", "abcd")),
        (b"[" * 100_000, ("text", "[" * 100_000)),
    ],
)
def test_bytes_are_shown_as_what_they_look_like(data: bytes | None, expected: tuple[str, str]) -> None:
    assert shown(data) == expected


@given(st.binary(max_size=200), st.sampled_from(list(Format)))
def test_any_bytes_can_be_shown_in_any_format(data: bytes, form: Format) -> None:
    kind, text = shown(data, form)
    assert kind
    assert isinstance(text, str)


def test_a_format_that_does_not_fit_is_said_and_the_value_is_shown() -> None:
    found = PartDecoder("t", is_key=False, form=Format.LONG).shown(b"abc")
    assert (found.kind, found.text) == ("text", "abc")
    assert "8 bytes, and here are 3" in found.problem
    found = PartDecoder("t", is_key=False, form=Format.REGISTRY).shown(b"\0\0\0\0\1x")
    assert "no schema registry" in found.problem


def test_a_chosen_format_is_kept_to() -> None:
    assert shown(b'{"a": 1}', Format.TEXT) == ("text", '{"a": 1}')
    assert shown(b"abc", Format.HEX) == ("hex", "61 62 63")
    assert shown(b"abc", Format.BASE64) == ("base64", "YWJj")


def test_the_commonest_kind_is_that_of_the_topic() -> None:
    assert commonest(["json", "null", "null", "null", "text", "json"]) == "json"
    assert commonest(["null"]) == ""


def test_a_format_that_there_is_not_is_refused() -> None:
    with pytest.raises(UserError, match="'xml' is no format"):
        format_of("xml")


def masked(data: bytes | None, form: Format = Format.AUTO, **rule: Any) -> str:
    mask = Masking([MaskingRule(topics=("*",), **rule)]).for_topic("t", ())
    return PartDecoder("t", is_key=False, form=form, mask=mask).shown(data).text


def test_what_cannot_be_taken_apart_is_hidden_as_a_whole() -> None:
    assert masked(b'{"card": "4111", "n": 1}', fields=("card",)) == '{"card": "' + HIDDEN + '", "n": 1}'
    for data in (b"card 4111", b'{"card": "4111"', b"\x00\xff4111", b"4111"):
        assert masked(data, fields=("card",)) == HIDDEN
    for form in (Format.TEXT, Format.HEX, Format.BASE64):
        assert masked(b'{"card": "4111", "n": 1}', form, fields=("card",)) == HIDDEN


def test_a_large_value_is_masked_too() -> None:
    large = b'{"card": "4111", "pad": "' + b"x" * 2_000_000 + b'"}'
    decoder = PartDecoder(
        "t", is_key=False, mask=Masking([MaskingRule(topics=("*",), fields=("card",))]).for_topic("t", ())
    )
    assert "4111" not in decoder.shown(large, is_row=True).text


def test_a_field_that_stands_twice_is_hidden_in_both_places() -> None:
    assert "4111" not in masked(b'{"card": "4111", "card": "4222"}', fields=("card",))
