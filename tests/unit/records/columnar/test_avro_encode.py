"""Columns as Avro's values: what fastavro reads again."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records.columnar.avro_columns import AvroReader, ids_of
from penstock.records.columnar.avro_encode import AvroWriter, BadRow, NotWritable, avro_of
from tests.unit.records.columnar.avro_texts import parse_avro
from tests.unit.records.columnar.test_avro_columns import Drawn, framed, record

EXAMPLES = 60
FRAME = framed(1, b"")


def writer_of(schema: Any, kind: pa.DataType) -> AvroWriter:
    return AvroWriter(parse_avro(json.dumps(schema)), kind, frame=FRAME)


def decoded(schema: Any, value: bytes) -> Any:
    assert value.startswith(FRAME)
    stream = io.BytesIO(value[len(FRAME) :])
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert not stream.read()
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_what_is_written_is_read_as_it_was(data: st.DataObject) -> None:
    drawn = Drawn(data.draw)
    schema = record(("a", drawn.schema()), ("b", "int"), name="Top")
    parsed = parse_avro(json.dumps(schema))
    reader = AvroReader(parsed)
    reader.add(1, parsed)
    pairs = [drawn.value(schema) for _ in range(4)]
    rows = [seen for _, seen in pairs]
    column = pa.array([None, *rows, rows[0], None], reader.type)
    written = AvroWriter(parsed, column.type, frame=FRAME).write(column)
    written.validate(full=True)
    assert reader.read(written, ids_of(written)).column.to_pylist() == column.to_pylist()
    # A part of a column, whose buffers begin elsewhere.
    part = AvroWriter(parsed, column.type, frame=FRAME).write(column.slice(2, 3))
    assert part.to_pylist() == written.to_pylist()[2:5]
    for value, (plain, _) in zip(written.to_pylist()[1:5], pairs, strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), plain)
        assert value == FRAME + out.getvalue()


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=5))
def test_decimals_are_written_to_38_digits(numbers: list[int]) -> None:
    decimal = {"logicalType": "decimal", "precision": 38, "scale": 0}
    schema = record(
        ("b", {"type": "bytes", **decimal}), ("f", {"type": "fixed", "name": "F", "size": 18, **decimal})
    )
    exact = [Decimal(number) for number in numbers]
    rows = [{"b": number, "f": number} for number in exact]
    kind = pa.struct([("b", pa.decimal128(38, 0)), ("f", pa.decimal128(38, 0))])
    written = writer_of(schema, kind).write(pa.array(rows, kind)).to_pylist()
    for number, value in zip(numbers, written, strict=True):
        size = (number.bit_length() + 8) // 8 if number >= 0 else ((-number - 1).bit_length() + 8) // 8
        assert value == FRAME + bytes([2 * size]) + number.to_bytes(
            size, "big", signed=True
        ) + number.to_bytes(18, "big", signed=True)


def test_a_schema_is_made_of_a_column() -> None:
    kind = pa.struct(
        [
            pa.field("id", pa.int64(), nullable=False), pa.field("byte", pa.int8()), pa.field("day", pa.date32()),
            pa.field("at", pa.timestamp("us", tz="UTC")), pa.field("local", pa.timestamp("us")),
            pa.field("price", pa.decimal128(10, 2)), pa.field("tags", pa.list_(pa.string())),
            pa.field("more", pa.map_(pa.string(), pa.float32())),
            pa.field("who", pa.struct([("name", pa.string()), ("where", pa.struct([("x", pa.float64())]))])),
            pa.field("raw", pa.binary()), pa.field("yes", pa.bool_()),
        ]
    )  # fmt: skip
    schema = avro_of(kind, "Order", "shop")
    row = {
        "id": 1, "byte": -3, "day": dt.date(2024, 2, 29), "at": dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC),
        "local": dt.datetime(1960, 1, 1, 0, 0, 0, 1), "price": Decimal("12.30"), "tags": ["a", None],
        "more": [("x", 1.5)], "who": {"name": "ana", "where": {"x": 2.5}}, "raw": b"\0\1", "yes": True,
    }  # fmt: skip
    column = pa.array([row, {"id": 2}], kind)
    values = writer_of(schema, kind).write(column).to_pylist()
    assert decoded(schema, values[0]) == {**row, "more": {"x": 1.5}}
    assert decoded(schema, values[1]) == {**dict.fromkeys(row), "id": 2}


def test_milliseconds_are_rounded_down() -> None:
    schema = record(("at", {"type": "long", "logicalType": "timestamp-millis"}))
    kind = pa.struct([("at", pa.timestamp("us", tz="UTC"))])
    values = writer_of(schema, kind).write(pa.array([{"at": -1}, {"at": 1999}], kind)).to_pylist()
    assert values == [FRAME + b"\x01", FRAME + b"\x02"]


def test_a_field_that_the_column_has_not_is_its_default_or_null() -> None:
    schema = record(("n", "int", 7), ("id", "long"), ("note", ["int", "null"]), ("z", "null"))
    kind = pa.struct([("id", pa.int32())])
    values = writer_of(schema, kind).write(pa.array([{"id": 1}], kind)).to_pylist()
    assert decoded(schema, values[0]) == {"n": 7, "id": 1, "note": None, "z": None}


@pytest.mark.parametrize(
    ("schema", "kind", "message"),
    [
        (record(("id", "int")), pa.struct([("id", pa.int64())]), "/id: int64 is not written as int"),
        (record(("id", "int")), pa.struct([]), "/id: the column has no such field"),
        (record(), pa.struct([("x", pa.int32())]), "/x: the schema has no such field"),
        (
            record(("id", ["null", "string"])),
            pa.struct([("id", pa.int64())]),
            "/id: int64 is not written as string",
        ),
        (
            record(("id", ["int", "string"])),
            pa.struct([("id", pa.bool_())]),
            "/id: no branch of the union takes bool",
        ),
        ("int", pa.string(), "the column: string is not written as int"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_before_any_row(
    schema: Any, kind: pa.DataType, message: str
) -> None:
    with pytest.raises(NotWritable, match=message):
        writer_of(schema, kind)


@pytest.mark.parametrize(
    ("schema", "kind", "row", "message"),
    [
        ("int", pa.int32(), None, "row 1: a field is null"),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            pa.string(),
            "B",
            "row 1: an enum has no such symbol",
        ),
        ({"type": "fixed", "name": "F", "size": 2}, pa.binary(), b"abc", "row 1: bytes or a decimal"),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32()), [1, None], "row 1: a field is null"),
    ],
)
def test_a_row_that_does_not_fit_is_named(schema: Any, kind: pa.DataType, row: Any, message: str) -> None:
    good = {"int32": 1, "string": "A", "binary": b"ab"}.get(str(kind), [])
    whole = pa.struct([("v", kind)])
    with pytest.raises(BadRow, match=message):
        writer_of(record(("v", schema)), whole).write(pa.array([{"v": good}, {"v": row}], whole))


def test_values_that_are_no_records_are_written() -> None:
    values = writer_of("string", pa.string()).write(pa.array(["a", None, "b" * 100_000]))
    assert values.to_pylist() == [FRAME + b"\x02a", None, FRAME + b"\xc0\x9a\x0c" + b"b" * 100_000]


@pytest.mark.parametrize("kind", [pa.struct([("not a name", pa.int32())]), pa.map_(pa.int32(), pa.int32())])
def test_what_avro_has_no_form_for_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(NotWritable):
        avro_of(kind, "R")


def test_structs_in_structs_do_not_take_twice_as_long_with_each_level() -> None:
    kind: pa.DataType = pa.struct([("x", pa.int32())])
    for _ in range(40):
        kind = pa.struct([("in", kind)])
    schema = avro_of(kind, "R")
    (value,) = writer_of(schema, kind).write(pa.array([{"in": None}], kind)).to_pylist()
    assert value == FRAME + b"\0"
    for _ in range(40):
        kind = pa.struct([("in", kind)])
    with pytest.raises(ValueError, match="nested too deeply"):
        AvroWriter(parse_avro(json.dumps(avro_of(kind, "R"))), kind)
