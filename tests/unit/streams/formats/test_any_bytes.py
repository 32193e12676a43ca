"""Whatever the bytes are: a codec gives a row of its columns' types, or a bad record. What it gives can be written and read."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.streams.formats.codecs import BadRecord
from penstock.streams.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Kind,
    array,
    decimal,
    map_of,
    struct,
)
from tests.unit.streams.formats.fake_registry import FakeLookup
from tests.unit.streams.formats.rows import values

FLAT = (
    ("S", STRING), ("I", INTEGER), ("L", BIGINT), ("D", DOUBLE), ("B", BOOLEAN), ("X", BYTES), ("E", decimal(20, 3)),
    ("DA", DATE), ("TI", TIME), ("TS", TIMESTAMP),
)  # fmt: skip
NESTED = (
    *FLAT,
    ("A", array(STRING)),
    ("M", map_of(STRING, DOUBLE)),
    ("R", struct(("P", INTEGER), ("Q", array(decimal(4, 1))))),
)
VALUES = {
    Kind.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    Kind.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Kind.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.floats(),
    Kind.BOOLEAN: st.booleans(),
    Kind.BYTES: st.binary(max_size=5),
    Kind.DATE: st.integers(-700_000, 2_900_000),
    Kind.TIME: st.integers(0, 86_399_999),
    Kind.TIMESTAMP: st.integers(-(2**50), 2**50),
}
SOME = ("x", 1, 2, 0.5, True, b"b", Decimal("1.000"), 1, 2, 3)
REGISTERED = ("AVRO", "JSON_SR", "PROTOBUF")


def of_type(type_):
    match type_.kind:
        case Kind.DECIMAL:
            top = 10**type_.precision - 1
            return st.integers(-top, top).map(lambda number: Decimal(number).scaleb(-type_.scale))
        case Kind.ARRAY:
            return st.lists(of_type(type_.element), max_size=3)
        case Kind.MAP:
            return st.dictionaries(VALUES[Kind.STRING], of_type(type_.element), max_size=3)
        case Kind.STRUCT:
            inner = st.tuples(*(of_type(each) for _, each in type_.fields))
            return inner.map(lambda found: dict(zip(dict(type_.fields), found, strict=True)))
        case _:
            return VALUES[type_.kind]


def same(left, right) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    return str(left) == str(right) and type(left) is type(right)


def codecs():
    for form in ("JSON", "DELIMITED", "PROTOBUF_NOSR", *REGISTERED):
        registry = FakeLookup()
        columns = FLAT if form == "DELIMITED" else NESTED
        yield form, columns, values(form, *columns, registry=registry)


CODECS = {form: (columns, codec) for form, columns, codec in codecs()}


@pytest.mark.parametrize("form", list(CODECS))
@given(st.data())
@settings(max_examples=40)
def test_any_row_comes_back(form, data):
    columns, codec = CODECS[form]
    row = data.draw(st.tuples(*(of_type(type_) for _, type_ in columns)))
    expected = row
    if form == "DELIMITED":  # an empty text is NULL there
        expected = tuple(None if value in ("", b"") else value for value in row)
    assert same(codec.decode(codec.encode(row)), expected)


@pytest.mark.parametrize("form", list(CODECS))
@given(st.data())
@settings(max_examples=80)
def test_any_bytes_are_a_row_or_a_bad_record(form, data):
    columns, codec = CODECS[form]
    nothing = (None,) * len(columns)
    whole = codec.encode(data.draw(st.sampled_from([nothing, SOME + nothing[len(SOME) :]])))
    at = data.draw(st.integers(0, len(whole)))
    changed = whole[:at] + data.draw(st.binary(max_size=6)) + whole[at + data.draw(st.integers(0, 4)) :]
    try:
        found = codec.decode(changed)
    except BadRecord:
        return
    assert found is None or len(found) == len(columns)
    if found is not None:
        try:
            codec.encode(found)
        except BadRecord:  # such as a date far beyond the year 9999 in Protobuf
            return
