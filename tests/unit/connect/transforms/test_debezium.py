"""Debezium's transforms: what they make was compared with Debezium 3.2's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.connect import ConnectError, DataError, Header, InvalidConfig, SourceRecord
from penstock.connect.data import INT32, INT64, OPTIONAL_STRING, STRING, Schema, Struct, struct, struct_of
from penstock.connect.interface import Transformation
from penstock.connect.transforms.debezium.event_router import EventRouter
from penstock.connect.transforms.debezium.logical_tables import ByLogicalTableRouter
from penstock.connect.transforms.debezium.new_record_state import ExtractNewRecordState

KEY = struct("db.t.Key", id=INT64)
ROW = struct("db.t.Value", id=INT64, name=OPTIONAL_STRING).optional()
SOURCE = struct("source", table=STRING, ts_ms=INT64, lsn=INT64.optional())
TRANSACTION = struct("block", id=STRING, total_order=INT64).optional()
OLD, NEW = {"id": 1, "name": "old"}, {"id": 1, "name": "new"}
OUTBOX = struct_of("db.outbox.Value", [
    ("id", STRING), ("aggregatetype", STRING), ("aggregateid", STRING), ("type", STRING), ("payload", OPTIONAL_STRING),
    ("part", INT32.optional()), ("at", Schema(INT64.type, name="io.debezium.time.MicroTimestamp", is_optional=True)),
])  # fmt: skip
EVENT = {
    "id": "e1",
    "aggregatetype": "order",
    "aggregateid": "17",
    "type": "Made",
    "payload": "text",
    "part": 2,
    "at": 5_999,
}


def change(op: str, before: Any = None, after: Any = None, *, row: Schema = ROW, **more: Any) -> SourceRecord:
    schema = struct(
        (row.name or "").replace("Value", "Envelope"),
        before=row.optional(), after=row.optional(), source=SOURCE, op=STRING, ts_ms=INT64.optional(), transaction=TRANSACTION,
    )  # fmt: skip
    value = schema.of({
        "before": None if before is None else row.optional().of(before),
        "after": None if after is None else row.optional().of(after),
        "source": SOURCE.new(table="t", ts_ms=99), "op": op, "ts_ms": 77,
    })  # fmt: skip
    return SourceRecord({}, {}, "db.t", value, value_schema=schema, key=KEY.new(id=1), key_schema=KEY, **more)


TOMBSTONE = SourceRecord({}, {}, "db.t", None, key=KEY.new(id=1), key_schema=KEY)


def applied(kind: type[Transformation], record: SourceRecord, **config: str) -> Any:
    made = kind()
    made.configure({name.replace("__", "."): value for name, value in config.items()})
    return made.apply(record)


def extracted(record: SourceRecord, **config: str) -> Any:
    return applied(ExtractNewRecordState, record, **config)


def values(record: Any) -> dict[str, Any]:
    assert isinstance(record.value, Struct)
    return dict(record.value.items())


def test_of_a_change_the_new_row_is_left() -> None:
    found = extracted(change("u", OLD, NEW))
    assert values(found) == NEW
    assert found.value_schema.name == "db.t.Value"
    assert found.key["id"] == 1


MODE = "delete__tombstone__handling__mode"


@pytest.mark.parametrize(
    ("config", "delete", "tombstone"),
    [
        ({}, "null", "out"),
        ({MODE: "drop"}, "out", "out"),
        ({MODE: "tombstone"}, "null", "out"),
        ({MODE: "rewrite"}, "row", "out"),
        ({MODE: "rewrite-with-tombstone"}, "row", "kept"),
        ({MODE: "DELETE-TO-TOMBSTONE"}, "null", "out"),
        ({"delete__handling__mode": "none", "drop__tombstones": "false"}, "null", "kept"),
        ({"delete__handling__mode": "rewrite"}, "row", "out"),
        ({"drop__tombstones": "false"}, "out", "kept"),
        ({"drop__tombstones": "true"}, "out", "out"),
    ],
)
def test_deletes_and_tombstones_become_what_the_mode_says(
    config: dict[str, str], delete: str, tombstone: str
) -> None:
    found = extracted(change("d", OLD), **config)
    assert (found is None) == (delete == "out")
    if delete == "row":
        assert values(found) == OLD | {"__deleted": "true"}
        assert values(extracted(change("c", None, NEW), **config)) == NEW | {"__deleted": "false"}
    elif delete == "null":
        assert found.value is None
        assert (found.value_schema is None) == (config.get(MODE, "").lower() == "delete-to-tombstone")
    assert (extracted(TOMBSTONE, **config) is None) == (tombstone == "out")


def test_fields_and_headers_are_added_with_prefixes_and_other_names() -> None:
    config = {
        "add__fields": "op,source.ts_ms,table:T,transaction.id,nothing",
        "add__headers": "op,source.table",
    }
    found = extracted(change("c", None, NEW), **config)
    assert values(found) == NEW | {"__op": "c", "__source_ts_ms": 99, "__T": "t", "__transaction_id": None}
    assert [(header.name, header.value) for header in found.headers] == [
        ("__op", "c"),
        ("__source_table", "t"),
    ]
    bare = extracted(change("c", None, NEW), add__fields="op", add__fields__prefix="")
    assert "op" in values(bare)


def test_a_tombstone_that_stays_has_the_operation_as_a_header() -> None:
    found = extracted(TOMBSTONE, **{MODE: "rewrite-with-tombstone", "add__headers": "op,table"})
    assert [(header.name, header.value) for header in found.headers] == [("__op", "d")]


def test_a_column_can_say_the_topic() -> None:
    assert extracted(change("c", None, NEW), route__by__field="name").topic == "new"
    assert extracted(change("d", OLD), route__by__field="name").topic == "old"
    with pytest.raises(DataError, match="Field 'id' is not of type STRING"):
        extracted(change("c", None, NEW), route__by__field="id")


def test_fields_that_a_header_names_are_dropped() -> None:
    record = change("c", None, NEW, headers=[Header("drop", ["name", "id"])])
    named = {"drop__fields__header__name": "drop"}
    assert values(extracted(record, **named)) == {"id": 1}
    found = extracted(
        record, **named, drop__fields__keep__schema__compatible="false", drop__fields__from__key="true"
    )
    assert values(found) == {}
    assert found.key.values == []


def test_the_change_of_an_emptied_table_is_left_out_and_what_is_no_change_stays() -> None:
    assert extracted(change("t")) is None
    other = SourceRecord({}, {}, "t", {"a": 1})
    assert extracted(other) is other


def routed(record: SourceRecord, **config: str) -> Any:
    return applied(EventRouter, record, **config)


def outbox(op: str = "c", **row: Any) -> SourceRecord:
    return change(op, None, EVENT | row, row=OUTBOX, headers=[Header("old", 1)])


def test_a_row_of_an_outbox_becomes_an_event_of_its_aggregate() -> None:
    found = routed(outbox())
    assert (found.topic, found.key, found.value, found.timestamp_ms) == (
        "outbox.event.order",
        "17",
        "text",
        77,
    )
    assert [(header.name, header.value) for header in found.headers] == [("old", 1), ("id", "e1")]


def test_deletes_and_tombstones_of_an_outbox_are_left_out_and_updates_are_told() -> None:
    assert routed(TOMBSTONE) is None
    assert routed(change("d", EVENT, row=OUTBOX)) is None
    assert routed(outbox("u")) is None
    with pytest.raises(ConnectError, match="Unexpected update"):
        routed(outbox("u"), table__op__invalid__behavior="fatal")


def test_further_columns_go_into_headers_the_value_or_the_partition() -> None:
    found = routed(outbox(), table__fields__additional__placement="type:header:eventType,part:partition")
    assert found.partition == 2
    assert found.headers[-1].name == "eventType"
    around = routed(outbox(), table__fields__additional__placement="type:envelope:kind")
    assert values(around) == {"payload": "text", "kind": "Made"}
    assert around.value_schema.name == "db.outbox.order.Value"
    with pytest.raises(InvalidConfig, match="pairs or trios"):
        routed(outbox(), table__fields__additional__placement="type")


def test_topic_and_time_come_from_other_columns_if_that_is_wanted() -> None:
    found = routed(outbox(), route__by__field="type", route__topic__regex="(.)(.*)", route__topic__replacement="$2.$1",
                   table__field__event__timestamp="at")  # fmt: skip
    assert (found.topic, found.timestamp_ms) == ("ade.M", 5)


def test_a_payload_that_is_json_becomes_a_struct() -> None:
    document = {
        "a": 1,
        "big": 2**40,
        "x": 1.5,
        "ok": True,
        "none": None,
        "list": [{"n": 1}, {"m": "z"}],
        "empty": [],
    }
    found = routed(outbox(payload=json.dumps(document)), table__expand__json__payload="true")
    assert {name: value for name, value in values(found).items() if name != "list"} == {
        "a": 1,
        "big": 2**40,
        "x": 1.5,
        "ok": True,
    }
    assert [dict(each.items()) for each in found.value["list"]] == [
        {"n": 1, "m": None},
        {"n": None, "m": "z"},
    ]
    kept = routed(outbox(payload=json.dumps(document)), table__expand__json__payload="true",
                  table__json__payload__null__behavior="optional_bytes",
                  table__json__payload__empty__array__behavior="optional_string")  # fmt: skip
    assert values(kept)["none"] is None
    assert values(kept)["empty"] == []


@pytest.mark.parametrize("payload", ["text", "{bad", '{"a": [1, "x"]}', "[" * 100_000, "{}x"])
def test_a_payload_that_cannot_be_expanded_stays_as_it_is(payload: str) -> None:
    assert routed(outbox(payload=payload), table__expand__json__payload="true").value == payload


def test_an_event_without_a_payload_becomes_a_tombstone_if_that_is_wanted() -> None:
    assert routed(outbox(payload=" ")).value == " "
    found = routed(outbox(payload=" "), route__tombstone__on__empty__payload="true")
    assert (found.value, found.value_schema) == (None, None)


def test_changes_of_several_tables_go_to_one_topic_and_keys_say_the_table() -> None:
    config = {"topic__regex": "(.*)t", "topic__replacement": "$1all"}
    found = applied(ByLogicalTableRouter, change("u", OLD, NEW), **config)
    assert found.topic == "db.all"
    assert dict(found.key.items()) == {"id": 1, "__dbz__physicalTableIdentifier": "db.t"}
    assert (found.key_schema.name, found.value_schema.name) == ("db.all.Key", "db.all.Envelope")
    assert found.value["after"].schema.name == "db.all.Value"
    found.value.check()
    named = applied(ByLogicalTableRouter, change("u", OLD, NEW), **config, key__field__name="shard",
                    key__field__regex="(.*)[.].*", key__field__replacement="$1")  # fmt: skip
    assert named.key["shard"] == "db"
    with pytest.raises(InvalidConfig, match=r"key\.field\.replacement must be non-empty"):
        applied(ByLogicalTableRouter, TOMBSTONE, **config, key__field__regex="x")
