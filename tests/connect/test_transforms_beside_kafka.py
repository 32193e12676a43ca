"""Every transform and predicate of Kafka Connect beside Kafka's own: the same records come out, or the same kind of error."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.connect.data.floats import to_single
from penstock.connect.errors import java_name_of
from penstock.connect.interface import Configured, Predicate, Transformation
from penstock.connect.transforms import (
    cast,
    extract_field,
    filter,
    flatten,
    header_from,
    headers,
    hoist_field,
    insert_field,
    mask_field,
    predicates,
    regex_router,
    replace_field,
    set_schema_metadata,
    timestamp_converter,
    timestamp_router,
    value_to_key,
)
from simulation.apache.connect_oracle import ConnectOracle, Refused, oracle
from tests.connect.described import Json, record_from, record_said
from tests.connect.transform_cases import cases
from tests.connect.transform_records import TYPES, VALUES, field, of, sink, struct, with_schema

PACKAGE = "org.apache.kafka.connect.transforms."
MODULES = (
    cast, extract_field, filter, flatten, header_from, headers, hoist_field, insert_field, mask_field, predicates, regex_router,
    replace_field, set_schema_metadata, timestamp_converter, timestamp_router, value_to_key,
)  # fmt: skip
CLASSES: dict[str, type[Configured]] = {
    java_name.removeprefix(PACKAGE): found
    for module in MODULES
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Configured)
    for java_name in found.java_names
}


@pytest.fixture(scope="module")
def kafka() -> ConnectOracle:
    return oracle()


CASES = cases()


@pytest.mark.parametrize(
    ("name", "config", "record"),
    CASES,
    ids=[f"{number}-{name}" for number, (name, _, _) in enumerate(CASES)],
)
def test_a_record_becomes_what_kafka_makes_of_it(
    kafka: ConnectOracle, name: str, config: Json, record: Json
) -> None:
    theirs = of_kafka(kafka, name, config, record)
    if isinstance(theirs, Refused):
        with pytest.raises(Exception) as ours:
            made(name, config, record)
        assert kind_of(java_name_of(ours.value)) == kind_of(theirs.java_class), f"{ours.value} | {theirs}"
        return
    found = made(name, config, record)
    assert is_same(found, theirs), f"{found} | {theirs}"


def of_kafka(kafka: ConnectOracle, name: str, config: Json, record: Json) -> Any:
    try:
        if name.startswith("predicates."):
            return kafka.is_matched(PACKAGE + name, config, record)
        return kafka.transform(PACKAGE + name, config, record)[0]
    except Refused as refused:
        return refused


def is_same(ours: Any, theirs: Any) -> bool:
    """Java writes a number of four bytes with more digits than it needs, and those that JSON does not have as texts."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[name], theirs[name]) for name in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, float) and not isinstance(theirs, dict):
        number = float(theirs)
        return (
            ours == number
            or (math.isnan(ours) and math.isnan(number))
            or to_single(ours) == ours == to_single(number)
        )
    return type(ours) is type(theirs) and bool(ours == theirs)


def made(name: str, config: Json, record: Json) -> Any:
    ours = CLASSES[name]()
    ours.configure(config)
    if isinstance(ours, Predicate):
        return ours.test(record_from(record))
    assert isinstance(ours, Transformation)
    given = record_from(record)
    before = record_said(given)
    found = ours.apply(given)
    assert record_said(given) == before, "the record itself was changed"
    return None if found is None else record_said(found)


def kind_of(java_class: str) -> str:
    """A wrong configuration, or a record that cannot be used. Java says the second in many ways."""
    return "config" if java_class.endswith("ConfigException") else "record"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_what_can_be_configured_is_the_same(kafka: ConnectOracle, name: str) -> None:
    theirs = {each["name"]: each for each in kafka.settings(PACKAGE + name)}
    ours = {
        setting.name: {
            "name": setting.name,
            "type": setting.kind.name,
            "importance": setting.importance,
            "is_required": setting.is_required,
            "default": None if setting.is_required else setting.default,
        }
        for setting in CLASSES[name].settings
    }
    assert ours == theirs


def test_a_decimal_is_masked_with_its_scale(kafka: ConnectOracle) -> None:
    """Kafka's mask has no decimals, so no converter takes it."""
    record = sink(field("dec"))
    theirs = kafka.transform(PACKAGE + "MaskField$Value", {"fields": "v"}, record)[0]
    assert theirs is not None
    assert "invalid" in theirs["value"]["payload"]
    assert made("MaskField$Value", {"fields": "v"}, record)["value"]["payload"] == {"v": "AA=="}
    ours = made("MaskField$Value", {"fields": "v", "replacement": "1.5"}, record)
    assert ours["value"]["payload"] == {"v": "AJY="}


@pytest.mark.parametrize("name", ["date", "at", "dec"])
def test_a_whole_value_that_is_cast_is_no_date_or_decimal_any_more(kafka: ConnectOracle, name: str) -> None:
    record = sink(with_schema(TYPES[name], VALUES[name]))
    theirs = kafka.transform(PACKAGE + "Cast$Value", {"spec": "string"}, record)[0]
    assert theirs is not None
    ours = made("Cast$Value", {"spec": "string"}, record)["value"]
    assert ours["schema"] == {"type": "string", "optional": True}
    assert ours["payload"] == theirs["value"]["payload"]
    assert theirs["value"]["schema"]["name"].startswith("org.apache.kafka.connect.data.")


def test_the_schema_of_what_is_no_struct_gets_a_name_too(kafka: ConnectOracle) -> None:
    """Kafka 4.3.1 asks any schema for its fields."""
    record = sink(with_schema(of("string"), "text"))
    with pytest.raises(Refused, match="Cannot list fields on non-struct type"):
        kafka.transform(PACKAGE + "SetSchemaMetadata$Value", {"schema.name": "n"}, record)
    ours = made("SetSchemaMetadata$Value", {"schema.name": "n"}, record)["value"]
    assert ours == {"schema": {"type": "string", "optional": False, "name": "n"}, "payload": "text"}


def test_one_transform_takes_records_with_several_schemas(kafka: ConnectOracle) -> None:
    config = {"renames": "v:w"}
    records = [sink(field(name)) for name in TYPES if name != "dec"] + [sink(with_schema(struct({}), {}))]
    ours = CLASSES["ReplaceField$Value"]()
    ours.configure(config)
    assert isinstance(ours, Transformation)
    found = [record_said(ours.apply(record_from(record))) for record in records]
    theirs = kafka.transform(PACKAGE + "ReplaceField$Value", config, *records)
    assert all(map(is_same, found, theirs))
