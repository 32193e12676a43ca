"""Records as Arrow tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.connect import DataError
from penstock.connect.connectors.columns import fitted, joined, known_columns, table_of
from penstock.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    map_of,
    struct,
)

INNER = struct("inner", x=INT32, y=STRING.optional()).optional()
ALL = struct(
    "all", a=INT8, b=INT16, c=INT32, d=INT64, e=FLOAT32, f=FLOAT64, g=BOOLEAN, h=STRING, i=BYTES, j=decimal(2), k=DATE,
    l=TIME, m=TIMESTAMP, n=array(INNER).optional(), o=map_of(STRING, array(INT64)).optional(), p=INNER,
)  # fmt: skip
ROW: dict[str, Any] = {
    "a": 1, "b": -2, "c": 3, "d": 1 << 62, "e": 0.5, "f": 0.1, "g": True, "h": "ä", "i": b"\xff", "j": Decimal("1.25"),
    "k": dt.date(2024, 2, 29), "l": dt.time(1, 2, 3, 4000), "m": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
}  # fmt: skip


def test_every_type_has_a_column_and_comes_back_as_it_was() -> None:
    full = {**ROW, "n": [INNER.new(x=1), None], "o": {"k": [1, 2], "l": []}, "p": INNER.new(x=2, y="z")}
    table = table_of(ALL, [ALL.of(full), ALL.of({**ROW, "o": {}})])
    table.validate(full=True)
    first, second = table.to_pylist(maps_as_pydicts="strict")
    assert first == {
        **ROW,
        "n": [{"x": 1, "y": None}, None],
        "o": {"k": [1, 2], "l": []},
        "p": {"x": 2, "y": "z"},
    }
    assert second == {**ROW, "n": None, "o": {}, "p": None}
    assert [str(field.type) for field in table.schema][:4] == ["int8", "int16", "int32", "int64"]
    assert not table.schema.field("a").nullable


def test_times_without_a_zone_are_in_utc_and_defaults_stand_for_nulls() -> None:
    schema = struct("s", at=TIMESTAMP, n=INT32.with_(default=7, is_optional=True))
    row = schema.new(at=dt.datetime(2024, 1, 1))
    assert table_of(schema, [row]).to_pylist() == [{"at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "n": 7}]


@pytest.mark.parametrize("value", ["text", 5, None, [1]])
def test_what_is_no_struct_and_no_map_has_no_columns(value: Any) -> None:
    with pytest.raises(DataError):
        table_of(None, [value])


@pytest.mark.parametrize(
    "schema", [decimal(39), decimal(-1), array(decimal(39)), map_of(STRING, decimal(39))]
)
def test_schemas_without_columns_are_told(schema: Schema) -> None:
    with pytest.raises(DataError):
        table_of(struct("s", x=schema.optional()), [])


def test_a_decimal_with_too_many_digits_is_told() -> None:
    schema = struct("s", x=decimal(2))
    with pytest.raises(DataError, match="does not fit"):
        table_of(schema, [schema.new(x=Decimal("1" * 40 + ".25"))])


def test_maps_have_the_columns_that_any_of_them_has() -> None:
    table = table_of(None, [{"a": 1, "n": None}, {"b": [{"x": 1}, {"y": 2.5}]}, {"a": 1.5, "e": {}, "l": []}])
    assert table.to_pylist() == [
        {"a": 1.0, "b": None},
        {"a": None, "b": [{"x": 1, "y": None}, {"x": None, "y": 2.5}]},
        {"a": 1.5, "b": None},
    ]


def test_values_that_do_not_go_together_are_text() -> None:
    table = table_of(None, [{"a": 1}, {"a": "x"}, {"a": [1, {"b": None}]}, {"a": True}])
    assert table.column("a").to_pylist() == ["1", "x", '[1,{"b":null}]', "true"]
    assert joined([pa.table({"a": [1]}), pa.table({"a": ["x"]})]).column("a").to_pylist() == ["1", "x"]


def test_numbers_become_the_wider_type_and_missing_columns_null() -> None:
    found = joined([pa.table({"a": [1]}), pa.table({"a": [1.5], "b": ["x"]})])
    assert found.to_pylist() == [{"a": 1.0, "b": None}, {"a": 1.5, "b": "x"}]


def test_what_is_not_known_is_left_out_however_deep() -> None:
    column = pa.array([{"x": 1, "y": None, "z": [{"q": None, "r": 2}]}, None])
    table = known_columns({"a": column, "b": pa.nulls(2), "c": pa.array([{}, {}], pa.struct([]))}, 2)
    assert table.to_pylist() == [{"a": {"x": 1, "z": [{"r": 2}]}}, {"a": None}]
    assert known_columns({"b": pa.nulls(2)}, 2).num_rows == 2


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None], pa.float64(), [1.0, None]),
        ([1.0, 2.0], pa.int64(), [1, 2]),
        ([1, 2], pa.string(), ["1", "2"]),
        (["2024-01-01T00:00:00Z"], pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
        ([1500], pa.timestamp("us", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC)]),
        (
            [{"a": 1, "b": 2}, None],
            pa.struct([("b", pa.float64()), ("c", pa.string())]),
            [{"b": 2.0, "c": None}, None],
        ),
        ([[{"a": 1}], [], None], pa.list_(pa.struct([("a", pa.string())])), [[{"a": "1"}], [], None]),
        ([{"a": [1]}, None], pa.string(), ['{"a":[1]}', None]),
    ],
)
def test_columns_are_fitted_into_other_types(
    values: list[Any], kind: pa.DataType, expected: list[Any]
) -> None:
    assert fitted(pa.array(values), kind).to_pylist() == expected
    if len(values) > 1:
        assert fitted(pa.array(values).slice(1), kind).to_pylist() == expected[1:]
        assert fitted(pa.chunked_array([pa.array(values)] * 2), kind).to_pylist() == expected * 2


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["x"], pa.int64()),
        ([1.5], pa.int64()),
        ([1 << 40], pa.int32()),
        ([{"a": 1}], pa.int64()),
        ([[1]], pa.struct([("a", pa.int64())])),
    ],
)
def test_values_that_would_change_are_told(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises(DataError):
        fitted(pa.array(values), kind)
