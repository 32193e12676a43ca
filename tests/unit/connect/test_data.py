"""Schemas and structs of Connect's data model."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pytest

from penstock.connect.data import (
    BYTES,
    DATE,
    FLOAT64,
    INT8,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from penstock.connect.data.checking import check
from penstock.connect.data.logical import LOGICAL, decimal_from_bytes, decimal_to_bytes
from penstock.connect.errors import DataError, SchemaError

ORDER = struct("order", id=INT64, note=OPTIONAL_STRING, prices=array(decimal(2)))


def test_a_struct_is_read_and_set_by_the_names_of_its_fields() -> None:
    row = ORDER.new(id=1, prices=[Decimal("1.50")])
    row["note"] = "first"
    assert list(row.items()) == [("id", 1), ("note", "first"), ("prices", [Decimal("1.50")])]
    assert "id" in row
    assert "nothing" not in row


def test_a_field_that_is_not_set_has_its_default() -> None:
    row = struct(None, size=Schema(Type.INT32, default=7)).new()
    assert row["size"] == 7
    assert row.without_default("size") is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, 128),
        (INT64, True),
        (STRING, 1),
        (STRING, None),
        (FLOAT64, "1"),
        (BYTES, "text"),
        (DATE, dt.datetime(2026, 1, 1)),
        (TIMESTAMP, 1),
        (array(STRING), ["a", 1]),
        (map_of(STRING, INT64), {"a": "b"}),
        (struct(None, a=STRING), {"a": "b"}),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        check(schema, value)


def test_a_required_field_without_a_value_is_refused_by_name() -> None:
    with pytest.raises(DataError, match='null used for required field: "id"'):
        ORDER.new(note="x", prices=[])
    with pytest.raises(DataError, match=r"other is not a valid field name"):
        ORDER.new(other=1)


def test_a_name_stands_once_in_a_struct() -> None:
    with pytest.raises(SchemaError):
        Schema(Type.STRUCT, fields=[("a", STRING), ("a", STRING)])


@pytest.mark.parametrize(
    ("schema", "value", "base"),
    [
        (decimal(2), Decimal("-1.28"), b"\x80"),
        (decimal(0), Decimal("128"), b"\x00\x80"),
        (decimal(3), Decimal("0.000"), b"\x00"),
        (DATE, dt.date(1970, 1, 2), 1),
        (TIME, dt.time(0, 0, 1, 5000), 1005),
        (TIMESTAMP, dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC), 2000),
        (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC), -1),
    ],
)
def test_logical_values_have_a_base_and_come_back(schema: Schema, value: Any, base: Any) -> None:
    assert schema.name is not None
    logical = LOGICAL[schema.name]
    check(schema, value)
    assert logical.to_base(schema, value) == base
    assert logical.from_base(schema, base) == value


def test_a_decimal_keeps_all_its_digits_and_must_have_the_schema_s_scale() -> None:
    long = Decimal("1" * 60 + ".55")
    assert decimal_from_bytes(decimal(2), decimal_to_bytes(decimal(2), long)) == long
    with pytest.raises(DataError, match="mismatching scale"):
        decimal_to_bytes(decimal(2), Decimal("1.5"))


def test_schemas_are_equal_by_what_they_say_and_go_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(ORDER))
    assert again == ORDER
    assert hash(again) == hash(ORDER)
    assert again != ORDER.optional()
    assert again.with_(version=2) != ORDER
