"""KAFKA, DELIMITED and NONE; keys with windows; columns from headers."""

from decimal import Decimal

import pytest

from penstock.streams.formats.codecs import BadRecord, FormatRefused, value_codec
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Window, WindowKind
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
)  # fmt: skip
from tests.unit.streams.formats.rows import keys, values


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        (INTEGER, 1, b"\0\0\0\x01"),
        (BIGINT, -1, b"\xff" * 8),
        (DOUBLE, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (STRING, "é", b"\xc3\xa9"),
        (BYTES, b"\0", b"\0"),
    ],
)
def test_kafka_has_the_forms_of_kafka_s_serializers(type_, value, data):
    codec = values("KAFKA", ("V", type_))
    assert codec.encode((value,)) == data
    assert codec.decode(data) == (value,)
    assert codec.encode((None,)) is None


def test_kafka_refuses_what_it_has_no_form_for():
    with pytest.raises(FormatRefused, match="The 'KAFKA' format does not support type 'BOOLEAN'"):
        values("KAFKA", ("V", BOOLEAN))
    with pytest.raises(FormatRefused, match="The 'KAFKA' format only supports a single field"):
        values("KAFKA", ("V", STRING), ("W", STRING))
    with pytest.raises(BadRecord, match="Size of data received by IntegerDeserializer is not 4"):
        values("KAFKA", ("V", INTEGER)).decode(b"123")
    with pytest.raises(BadRecord):
        values("KAFKA", ("V", INTEGER)).encode((1 << 40,))


ALL = (
    ("S", STRING), ("I", INTEGER), ("B", BIGINT), ("D", DOUBLE), ("E", decimal(12, 4)), ("T", BOOLEAN), ("X", BYTES),
    ("DA", DATE), ("TI", TIME), ("TS", TIMESTAMP),
)  # fmt: skip


def test_a_line_there_and_back():
    codec = values("DELIMITED", *ALL)
    row = ("a", -1, 2, 1e10, Decimal("0.0001"), True, b"\x01", 18000, 5, 6)
    assert codec.encode(row) == b"a,-1,2,1.0E10,0.0001,true,AQ==,18000,5,6"
    assert codec.decode(codec.encode(row)) == row
    assert codec.encode((None,) * 10) == b",,,,,,,,,"
    assert codec.decode(b",,,,,,,,,") == (None,) * 10


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("-5", "-5"), '"-5",-5'),
        (("", ""), '"",'),
        (("a b", " c"), 'a b," c"'),
        (("a ", "b"), '"a ",b'),
        (("a,b", 'c"d'), '"a,b","c""d"'),
        (("é", "é"), '"é",é'),
        (("a\nb", "#x"), '"a\nb","#x"'),
    ],
)
def test_quotes_stand_where_commons_csv_puts_them(row, line):
    codec = values("DELIMITED", ("A", STRING), ("B", STRING))
    assert codec.encode(row).decode() == line
    assert codec.decode(line.encode()) == tuple(value or None for value in row)


def test_only_the_first_line_counts():
    codec = values("DELIMITED", ("A", STRING), ("B", STRING))
    assert codec.decode(b'\n\r\na,"b" \nc') == ("a", "b")


@pytest.mark.parametrize("data", [b"", b"\n", b"a", b"a,b,c", b'a,"b', b'a,"b"c'])
def test_lines_that_do_not_fit_are_bad_records(data):
    with pytest.raises(BadRecord, match="Failed to deserialize value"):
        values("DELIMITED", ("A", STRING), ("B", STRING)).decode(data)


@pytest.mark.parametrize(
    ("type_", "text"), [(INTEGER, "1.0"), (DOUBLE, "x"), (decimal(3, 1), "1.25"), (TIME, "-1")]
)
def test_a_value_of_another_type_is_a_bad_record(type_, text):
    with pytest.raises(BadRecord, match="Error deserializing delimited"):
        values("DELIMITED", ("A", type_)).decode(text.encode())


def test_delimiters():
    assert values("DELIMITED", ("A", STRING), ("B", STRING), delimiter="TAB").encode(("a", "b")) == b"a\tb"
    assert values("DELIMITED", ("A", STRING), ("B", STRING), delimiter="SPACE").decode(b"a b") == ("a", "b")
    assert (
        values("DELIMITED", ("A", STRING), ("B", STRING), delimiter="|").encode(("a,b", "c|d"))
        == b'a,b|"c|d"'
    )
    with pytest.raises(FormatRefused, match="Invalid delimiter value: '%%'"):
        values("DELIMITED", ("A", STRING), delimiter="%%")
    with pytest.raises(FormatRefused, match="Delimiter cannot be empty"):
        values("DELIMITED", ("A", STRING), delimiter=" ")
    with pytest.raises(FormatRefused, match="does not support type 'ARRAY', column: `A`"):
        values("DELIMITED", ("A", array(STRING)))


def test_none_has_no_columns():
    assert keys("NONE").decode(b"x") == (None, None)
    assert keys("NONE").encode(()) is None
    with pytest.raises(FormatRefused, match="The 'NONE' format can only be used when no columns are defined"):
        keys("NONE", ("K", STRING))


def test_windowed_keys():
    hour = Window(WindowKind.TUMBLING, 3_600_000)
    session = Window(WindowKind.SESSION, 0)
    timed, of_session = (
        keys("KAFKA", ("K", STRING), window=hour),
        keys("KAFKA", ("K", STRING), window=session),
    )
    assert timed.encode(("a",), (7, 3_600_007)) == b"a" + bytes(7) + b"\x07"
    assert timed.decode(b"a" + bytes(7) + b"\x07") == (("a",), (7, 3_600_007))
    assert of_session.encode(("a",), (1, 2)) == b"a" + bytes(7) + b"\x02" + bytes(7) + b"\x01"
    assert of_session.decode(of_session.encode(("a",), (1, 2))) == (("a",), (1, 2))
    with pytest.raises(BadRecord, match="has 3 bytes, and needs 8"):
        timed.decode(b"abc")
    with pytest.raises(BadRecord, match="has no window"):
        timed.encode(("a",))


def test_columns_from_headers_are_not_in_the_bytes():
    schema = Schema((), (Column("A", STRING), Column("H", BYTES), Column("B", STRING)), headers=(("H", "h"),))
    codec = value_codec(schema, Formats(Format("KAFKA"), Format("DELIMITED")), topic="t")
    assert codec.decode(b"a,b") == ("a", None, "b")
    assert codec.encode(("a", b"h", "b")) == b"a,b"
