"""What the tests beside Kafka cannot ask, because Kafka's converter does not make such records."""

from __future__ import annotations

from decimal import Decimal

import pytest

from penstock.connect import DataError, Header, InvalidConfig, SinkRecord
from penstock.connect.data import INT32, INT64, OPTIONAL_STRING, STRING, Schema, Struct, Type, decimal, struct
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.cast import CastValue
from penstock.connect.transforms.extract_field import ExtractFieldValue
from penstock.connect.transforms.flatten import FlattenValue
from penstock.connect.transforms.header_from import HeaderFromValue
from penstock.connect.transforms.insert_field import InsertFieldKey, InsertFieldValue
from penstock.connect.transforms.mask_field import MaskFieldValue
from penstock.connect.transforms.replace_field import ReplaceFieldValue
from penstock.connect.transforms.set_schema_metadata import SetSchemaMetadataValue
from penstock.connect.transforms.sides import MAX_SCHEMAS
from penstock.connect.transforms.timestamp_router import TimestampRouter
from penstock.connect.transforms.value_to_key import ValueToKey

SEVEN = Schema(Type.INT32, default=7)
ROW = struct("row", id=INT64, size=SEVEN)
EMPTY = Struct.trusted(ROW, [1, None])
NO_DEFAULTS = {"replace.null.with.default": "false"}


def applied(
    kind: type[Transformation], config: dict[str, str], value: object, schema: Schema | None = ROW
) -> ConnectRecord:
    made = kind()
    made.configure(config)
    found = made.apply(SinkRecord("t", 0, 0, value, value_schema=schema, timestamp_ms=5))
    assert isinstance(found, ConnectRecord)
    return found


CASES: list[tuple[type[Transformation], dict[str, str]]] = [
    (InsertFieldValue, {"topic.field": "t"}),
    (ReplaceFieldValue, {"exclude": "id"}),
    (CastValue, {"spec": "id:int8"}),
    (MaskFieldValue, {"fields": "id"}),
    (SetSchemaMetadataValue, {"schema.name": "n"}),
    (HeaderFromValue, {"fields": "id", "headers": "h", "operation": "move"}),
]


@pytest.mark.parametrize(("kind", "config"), CASES)
def test_a_null_in_a_required_field_gets_its_default_or_is_refused(
    kind: type[Transformation], config: dict[str, str]
) -> None:
    assert applied(kind, config, EMPTY).value["size"] == 7
    assert 7 in applied(kind, config, EMPTY).value.values
    with pytest.raises(DataError, match='null used for required field: "size"'):
        applied(kind, config | NO_DEFAULTS, EMPTY)


def test_a_key_gets_the_default_or_is_refused() -> None:
    assert applied(ValueToKey, {"fields": "size"}, EMPTY).key.values == [7]
    with pytest.raises(DataError, match='null used for required field: "size"'):
        applied(ValueToKey, {"fields": "size"} | NO_DEFAULTS, EMPTY)


def test_a_field_that_is_extracted_is_null_or_its_default() -> None:
    assert applied(ExtractFieldValue, {"field": "size"}, EMPTY).value == 7
    assert applied(ExtractFieldValue, {"field": "size"} | NO_DEFAULTS, EMPTY).value is None


def test_the_default_of_a_struct_is_that_of_its_fields_when_it_is_flat() -> None:
    inner = struct(None, a=INT32, b=OPTIONAL_STRING)
    inner.default = inner.new(a=4, b="x")
    outer = struct(None, inner=inner)
    flat = applied(FlattenValue, {}, Struct.trusted(outer, [None]), outer)
    assert flat.value_schema is not None
    assert [field.schema.default for field in flat.value_schema.fields] == [4, "x"]
    assert flat.value["inner.a"] == 4


def test_a_schema_keeps_its_default_under_a_new_name() -> None:
    schema = struct("old", a=INT32)
    schema.default = schema.new(a=1)
    found = applied(SetSchemaMetadataValue, {"schema.name": "new"}, schema.new(a=2), schema)
    assert found.value_schema is not None
    assert found.value_schema.name == "new"
    assert found.value_schema.default["a"] == 1


def test_a_record_that_is_not_changed_stays_the_same() -> None:
    record = SinkRecord("t", 0, 0, None, key={"a": 1}, headers=[Header("h", 1)])
    made = InsertFieldKey()
    made.configure({"topic.field": "t"})
    changed = made.apply(record)
    assert changed.key == {"a": 1, "t": "t"}
    assert record.key == {"a": 1}
    assert changed.headers == record.headers
    assert changed.original == ("t", 0, 0)


def test_schemas_that_are_known_are_bounded() -> None:
    made = InsertFieldValue()
    made.configure({"topic.field": "t"})
    for number in range(3 * MAX_SCHEMAS):
        schema = struct(f"row{number}", a=STRING)
        assert made.apply(SinkRecord("t", 0, 0, schema.new(a="x"), value_schema=schema)).value["t"] == "t"
    assert len(made._plans) == MAX_SCHEMAS


def test_a_mask_for_a_decimal_must_fit_its_scale() -> None:
    schema = struct(None, price=decimal(2))
    row = Struct.trusted(schema, [Decimal("9.99")])
    assert str(applied(MaskFieldValue, {"fields": "price"}, row, schema).value["price"]) == "0.00"
    with pytest.raises(DataError, match="more digits than the scale"):
        applied(MaskFieldValue, {"fields": "price", "replacement": "0.001"}, row, schema)


def test_a_pattern_for_times_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidConfig, match="Illegal pattern character 'b'"):
        applied(TimestampRouter, {"timestamp.format": "bb"}, 1, None)


def test_maps_that_are_nested_too_deeply_are_refused() -> None:
    value: dict[str, object] = {}
    for _ in range(2_000):
        value = {"a": value}
    with pytest.raises(DataError, match="nested"):
        applied(FlattenValue, {}, value, None)
