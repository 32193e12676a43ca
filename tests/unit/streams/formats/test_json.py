from decimal import Decimal

import pytest

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
    array,
    decimal,
    map_of,
    struct,
)  # fmt: skip
from tests.unit.streams.formats.rows import keys, values


def read(type_, text: str):
    (value,) = values("JSON", ("V", type_)).decode(f'{{"V": {text}}}'.encode())
    return value


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (INTEGER, "5", 5),
        (INTEGER, "5.9", 5),
        (INTEGER, '"-7"', -7),
        (INTEGER, "4294967297", 1),
        (BIGINT, "18446744073709551617", 1),
        (BIGINT, "1e3", 1000),
        (BIGINT, "1e999999999", 0),
        (DOUBLE, "1", 1.0),
        (DOUBLE, '" 1.5e3d"', 1500.0),
        (DOUBLE, '"NaN"', pytest.approx(float("nan"), nan_ok=True)),
        (BOOLEAN, "true", True),
        (STRING, "12", "12"),
        (STRING, "1.50", "1.50"),
        (STRING, "1.0E5", "1.0E+5"),
        (STRING, "123456789012345678901234567890", "123456789012345678901234567890"),
        (STRING, "true", "true"),
        (STRING, '{"a": [1.10, null], "é": "x"}', '{"a":[1.10,null],"é":"x"}'),
        (STRING, '[1, "a", null, {"b": 2}]', '[1, a, null, {"b":2}]'),
        (decimal(6, 3), "12.30", Decimal("12.300")),
        (decimal(6, 3), '"12.3"', Decimal("12.300")),
        (decimal(38, 20), "123456789012345678.12345678901234567890", Decimal("123456789012345678.12345678901234567890")),
        (BYTES, '"AQI="', b"\x01\x02"),
        (DATE, "18000", 18000),
        (DATE, '"18000"', 18000),
        (TIME, "86399999", 86399999),
        (TIMESTAMP, "-5", -5),
        (array(INTEGER), '[1, null, "3"]', [1, None, 3]),
        (map_of(STRING, DOUBLE), '{"a": 1, "b": null}', {"a": 1.0, "b": None}),
        (struct(("A", INTEGER), ("B", STRING)), '{"b": 1, "a": 2, "c": 3}', {"A": 2, "B": "1"}),
        (struct(("A", INTEGER)), "{}", {"A": None}),
    ],
)  # fmt: skip
def test_a_value_is_read_as_its_column_says(type_, text, value):
    assert read(type_, text) == value
    assert type(read(type_, text)) is type(value) or isinstance(value, type(pytest.approx(1)))


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (INTEGER, "true"), (INTEGER, '"4294967297"'), (INTEGER, '"1.0"'), (INTEGER, "[]"), (BOOLEAN, '"true"'),
        (BOOLEAN, "1"), (DOUBLE, "true"), (decimal(4, 2), "1.234"), (decimal(4, 2), "100"),
        (decimal(4, 2), "1e999999999"), (decimal(4, 2), '"x"'),
        (BYTES, '"???"'), (BYTES, "5"), (TIME, "86400001"), (TIME, "-1"), (array(INTEGER), "5"), (array(INTEGER), "[true]"),
        (map_of(STRING, INTEGER), "[]"), (struct(("A", INTEGER)), "[]"), (STRING, '"\\ud800'), (DOUBLE, "NaN"),
    ],
)  # fmt: skip
def test_what_does_not_fit_its_column_is_a_bad_record(type_, text):
    with pytest.raises(BadRecord, match="Failed to deserialize value from topic: t"):
        read(type_, text)


def test_the_place_of_a_mistake_is_named():
    codec = values("JSON", ("A", struct(("B", array(INTEGER)))))
    with pytest.raises(BadRecord, match=r"requiredType: INTEGER, path: \$\.A\.B\[1\]"):
        codec.decode(b'{"A": {"B": [1, true]}}')


def test_names_are_found_whatever_their_case_and_the_own_name_first():
    codec = values("JSON", ("ID", INTEGER), ("name", STRING))
    assert codec.decode(b'{"id": 1, "NAME": "x"}') == (1, None)
    assert codec.decode(b'{"id": 1, "ID": 2, "name": "x"}') == (2, "x")
    assert codec.decode(b'{"Id": 1, "iD": 2}') == (2, None)
    assert codec.decode(b'{"ID": null, "id": 2}') == (None, None)


def test_what_is_no_object_or_no_json():
    codec = values("JSON", ("A", INTEGER))
    assert codec.decode(b"null") is None
    assert codec.decode(None) is None
    assert codec.decode(b'{"A": 1} {"A": 2}') == (1,)
    for data in (b"", b"[1]", b"5", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(BadRecord):
            codec.decode(data)


def test_all_columns_are_written_and_numbers_are_java_s():
    codec = values(
        "JSON",
        ("I", INTEGER), ("B", BIGINT), ("S", STRING), ("D", DOUBLE), ("E", decimal(6, 3)), ("X", BYTES), ("T", BOOLEAN),
        ("A", array(DOUBLE)), ("M", map_of(STRING, decimal(4, 2))), ("R", struct(("P", DOUBLE), ("Q", STRING))),
    )  # fmt: skip
    row = (
        1, -(2**63), 'é"\n', 1e10, Decimal("1.200"), b"\x01", True,
        [0.1, None, 1e-5], {"k": Decimal("1.00")}, {"P": 100.0, "Q": None},
    )  # fmt: skip
    assert codec.encode(row).decode() == (
        '{"I":1,"B":-9223372036854775808,"S":"é\\"\\n","D":1.0E10,"E":1.200,"X":"AQ==","T":true,'
        '"A":[0.1,null,1.0E-5],"M":{"k":1.00},"R":{"P":100.0,"Q":null}}'
    )
    assert codec.encode((None,) * 10).decode() == (
        '{"I":null,"B":null,"S":null,"D":null,"E":null,"X":null,"T":null,"A":null,"M":null,"R":null}'
    )
    assert codec.decode(codec.encode(row)) == row
    assert codec.encode(None) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"NaN"'), (float("-inf"), '"-Infinity"'), (0.0, "0.0"), (-0.0, "-0.0"), (1e7, "1.0E7"), (5, "5.0"),
        (-123.25, "-123.25"), (0.001, "0.001"), (9.99e-4, "9.99E-4"),
    ],
)  # fmt: skip
def test_a_double_is_written_as_java_writes_it(value, text):
    assert values("JSON", ("V", DOUBLE), wrap=False).encode((value,)).decode() == text


def test_a_text_that_is_no_unicode_is_a_bad_record():
    with pytest.raises(BadRecord, match="JSON does not carry it"):
        values("JSON", ("V", STRING)).encode(("\ud800",))


def test_a_bare_value():
    codec = values("JSON", ("V", array(INTEGER)), wrap=False)
    assert codec.decode(b"[1, 2]") == ([1, 2],)
    assert codec.decode(b"null") == (None,)
    assert codec.encode(([1, 2],)) == b"[1,2]"
    assert codec.encode((None,)) is None


def test_keys_are_bare_when_there_is_one_column():
    one, two = keys("JSON", ("K", STRING)), keys("JSON", ("K", STRING), ("L", INTEGER))
    assert one.encode(("a",)) == b'"a"'
    assert one.decode(b'"a"') == (("a",), None)
    assert one.encode(None) is None
    assert two.encode(("a", None)) == b'{"K":"a","L":null}'
    assert two.decode(b'{"L":5}') == ((None, 5), None)
