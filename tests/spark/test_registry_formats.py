"""Keys and values with schemas of a registry, as columns."""

from __future__ import annotations

import base64
import datetime as dt
import io
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

import penstock.spark
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_ports
from tests.clients.admin import create_topic
from tests.conftest import MakeTopic
from tests.docs.pages import HOW_TO, blocks
from tests.small_registry import SmallRegistry, small_registry
from tests.spark.conftest import ReadTopic, finish, produce


@pytest.fixture(scope="module")
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as running:
        yield running


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "shop",
        "fields": [
            {"name": field[0], "type": field[1], **({"default": field[2]} if len(field) > 2 else {})}
            for field in fields
        ],
    }


OLD = record(("id", "int"), ("item", "string"))
NEW = record(
    ("id", "long"),
    ("item", "string"),
    ("price", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}], None),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}, 0),
    ("tags", {"type": "array", "items": "string"}, []),
)
NEW_TYPE = "struct<id:bigint,item:string,price:decimal(8,2),at:timestamp,tags:array<string>>"
EPOCH = dt.datetime(1970, 1, 1)


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


def orders(registry: SmallRegistry, subject: str) -> tuple[list[dict[str, Any]], list[Any]]:
    """Records of two versions, and the rows that they are."""
    old, new = registry.add(subject, OLD), registry.add(subject, NEW)
    later = dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC)
    records = [
        {"value": avro(old, OLD, {"id": 1, "item": "tea"})},
        {
            "value": avro(
                new, NEW, {"id": 2, "item": "milk", "price": Decimal("1.25"), "at": later, "tags": ["a"]}
            )
        },
        {"value": None, "key": b"gone"},
        {"value": avro(old, OLD, {"id": 3, "item": "é"})},
    ]
    rows = [
        Row(id=1, item="tea", price=None, at=EPOCH, tags=[]),
        Row(id=2, item="milk", price=Decimal("1.25"), at=later.replace(tzinfo=None), tags=["a"]),
        None,
        Row(id=3, item="é", price=None, at=EPOCH, tags=[]),
    ]
    return records, rows


def values(frame: Any) -> list[Any]:
    return [row.value for row in frame.orderBy("partition", "offset").collect()]


def test_one_query_reads_what_several_versions_have_written(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    records, rows = orders(registry, f"{topic}-value")
    produce(broker.bootstrap, topic, records)
    frame = read_topic(topic, valueFormat="avro", schema_registry_url=registry.url)
    assert frame.schema["value"].dataType.simpleString() == NEW_TYPE
    assert values(frame) == rows
    # The reader's schema may be an older one, or any text.
    older = read_topic(topic, valueFormat="avro", valueSchemaVersion="1", schema_registry_url=registry.url)
    assert older.schema["value"].dataType.simpleString() == "struct<id:int,item:string>"
    assert [value and value.item for value in values(older)] == ["tea", None, None, "é"]
    text = '{"type":"record","name":"Any","fields":[{"name":"item","type":"string"}]}'
    part = read_topic(topic, valueFormat="avro", valueSchema=text, schema_registry_url=registry.url)
    assert values(part.select("partition", "offset", "value")) == [row and Row(item=row.item) for row in rows]


def test_what_is_broken_is_null_with_the_reason_and_the_bytes(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    records, rows = orders(registry, f"{topic}-value")
    broken = [records[0]["value"][:-2], b"\0\0\0\xff\xff\x02", b"text", b""]
    other = registry.add("proto", 'syntax = "proto3";', "PROTOBUF")
    broken.append(b"\0" + other.to_bytes(4, "big") + b"\0")
    produce(broker.bootstrap, topic, [*records, *({"value": each} for each in broken)])
    options = {"valueFormat": "avro", "schema_registry_url": registry.url}
    frame = read_topic(topic, **options, includeRawValue="true", includeErrors="true")
    found = frame.orderBy("offset").collect()
    assert [row.value for row in found] == [*rows, *[None] * 5]
    assert [bytes(row.rawValue) for row in found[4:]] == broken
    assert [row.valueError for row in found] == [
        None, None, None, None,
        "the value ends too early (at byte 6)",
        "schema 65535: Schema not found",
        "the value does not begin with the id of a schema",
        "the value does not begin with the id of a schema",
        f"schema {other}: it is PROTOBUF, not AVRO",
    ]  # fmt: skip
    with pytest.raises(
        PySparkException, match=f"the value of {topic}-0 at offset 4 is not read: the value ends too early"
    ):
        read_topic(topic, **options, valueMode="FAILFAST").collect()


def test_keys_are_read_as_well(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    key = registry.add(f"{topic}-key", '"long"')
    produce(
        broker.bootstrap, topic, [{"key": avro(key, "long", 7), "value": "x"}, {"key": "bad", "value": "y"}]
    )
    frame = read_topic(
        topic, keyFormat="avro", includeRawKey="true", includeErrors="true", schema_registry_url=registry.url
    )
    rows = frame.orderBy("offset").select("key", "value", "rawKey", "keyError").collect()
    assert [(row.key, bytes(row.value), bytes(row.rawKey)[:3]) for row in rows] == [
        (7, b"x", b"\0\0\0"), (None, b"y", b"bad")
    ]  # fmt: skip
    assert rows[1].keyError == "the value does not begin with the id of a schema"


def test_a_registry_that_is_away_is_told(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    records, rows = orders(registry, f"{topic}-value")
    produce(broker.bootstrap, topic, records)
    away = f"http://127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(PySparkException, match=f"cannot reach the schema registry at {away}"):
        read_topic(topic, valueFormat="avro", schema_registry_url=away)
    with pytest.raises(PySparkException, match=f"no schema for '{topic}-key'"):
        read_topic(topic, keyFormat="avro", schema_registry_url=registry.url)
    # Away when tasks look for the older schema.
    with small_registry() as other:
        orders(other, f"{topic}-value")
        frame = read_topic(topic, valueFormat="avro", includeErrors="true", schema_registry_url=other.url)
    found = frame.orderBy("offset").collect()
    missing = [number for number, row in enumerate(found) if row.valueError is not None]
    assert all("cannot reach the schema registry" in found[number].valueError for number in missing)
    assert len(missing) < len(rows)


def test_a_login_is_used_and_never_shown(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    with small_registry("Basic " + base64.b64encode(b"ana:secret").decode()) as registry:
        records, rows = orders(registry, f"{topic}-value")
        produce(broker.bootstrap, topic, records)
        options = {"valueFormat": "avro", "schema.registry.url": registry.url}
        frame = read_topic(topic, **options, **{"schema.registry.basic.auth.user.info": "ana:secret"})
        assert values(frame) == rows
        with pytest.raises(PySparkException, match="Unauthorized"):
            read_topic(topic, **options)


def test_a_stream_reads_and_writes_exactly_once(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    stream_topic: ReadTopic,
    read_topic: ReadTopic,
    registry: SmallRegistry,
    tmp_path: Path,
) -> None:
    topic, out = make_topic(), make_topic()
    records, _ = orders(registry, f"{topic}-value")
    produce(broker.bootstrap, topic, records)
    stream = stream_topic(
        topic, valueFormat="avro", schema_registry_url=registry.url, startingOffsets="earliest"
    )
    written = stream.where("value is not null").selectExpr(
        "named_struct('id', value.id, 'loud', upper(value.item)) as value", "cast(value.id as string) as key"
    )
    for _ in range(2):  # the second has nothing to write
        query = (
            written.writeStream.format("penstock")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("topic", out)
            .option("exactlyOnce", "true")
            .option("valueFormat", "avro")
            .option("schema.registry.url", registry.url)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        finish(query)
    frame = read_topic(
        out, valueFormat="avro", schema_registry_url=registry.url, kafka_isolation_level="read_committed"
    )
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,loud:string>"
    assert [(row.id, row.loud) for row in values(frame)] == [(1, "TEA"), (2, "MILK"), (3, "É")]
    assert registry.subjects()[f"{out}-value"] == 1


def save(frame: Any, broker: PenstockBroker, registry: SmallRegistry, **options: str) -> None:
    named = {name.replace("_", "."): value for name, value in options.items()}
    given = {"kafka.bootstrap.servers": broker.bootstrap, "schema.registry.url": registry.url, **named}
    frame.write.format("penstock").options(**given).mode("append").save()


def test_rows_are_written_under_the_subject_of_the_strategy(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    registry: SmallRegistry,
) -> None:
    topic, other = make_topic(), make_topic()
    schema = record(("n", "long"), ("name", ["null", "string"], None), name=f"Named{topic.replace('-', '_')}")
    text = str(schema).replace("'", '"').replace("None", "null")
    frame = spark.sql("select named_struct('n', id, 'name', cast(id as string)) as value from range(3)")
    save(frame, broker, registry, topic=topic, valueFormat="avro", valueSchema=text)
    strategy = {"value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy"}
    save(frame, broker, registry, topic=other, valueFormat="avro", valueSchema=text, **strategy)
    full_name = f"shop.{schema['name']}"
    assert {f"{topic}-value", full_name} <= registry.subjects().keys()
    assert f"{other}-value" not in registry.subjects()
    read = read_topic(other, valueFormat="avro", valueSubject=full_name, schema_registry_url=registry.url)
    assert sorted((row.n, row.name) for row in values(read)) == [(0, "0"), (1, "1"), (2, "2")]
    # With the topic in each row, every topic has its own subject.
    both = spark.sql(
        f"select named_struct('n', id) as value, if(id = 0, '{topic}', 'x{topic}') as topic from range(2)"
    )
    save(both, broker, registry, valueFormat="avro")
    assert f"x{topic}-value" in registry.subjects()


def test_a_writer_that_may_not_register_needs_the_schema_to_be_there(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    registry: SmallRegistry,
) -> None:
    topic = make_topic()
    frame = spark.sql("select named_struct('id', 7L, 'item', 'tea') as value, 1L as key")
    with pytest.raises(PySparkException, match=f"Subject '{topic}-value' not found"):
        save(
            frame.select("value"),
            broker,
            registry,
            topic=topic,
            valueFormat="avro",
            auto_register_schemas="false",
        )
    registry.add(f"{topic}-value", NEW)
    registry.add(f"{topic}-key", '"long"')
    save(
        frame, broker, registry, topic=topic, valueFormat="avro", keyFormat="avro", use_latest_version="true",
        exactlyOnce="true",
    )  # fmt: skip
    read = read_topic(topic, valueFormat="avro", keyFormat="avro", schema_registry_url=registry.url)
    row = read.collect()[0]
    assert (row.key, row.value.id, row.value.item, row.value.tags) == (7 - 6, 7, "tea", [])
    wrong = spark.sql("select named_struct('id', 'seven') as value")
    with pytest.raises(PySparkException, match="/id: string is not written as long"):
        save(wrong, broker, registry, topic=topic, valueFormat="avro", use_latest_version="true")
    assert read.count() == 1


def test_a_table_of_the_catalog_has_the_registry_s_columns(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    records, rows = orders(registry, f"{topic}-value")
    produce(broker.bootstrap, topic, records)
    tables = penstock.spark.catalog(
        spark,
        bootstrap=broker.bootstrap,
        topics=[topic],
        options={"valueFormat": "avro", "schema.registry.url": registry.url},
        database="typed",
    )
    name = f"typed.{next(iter(tables))}"
    assert [row.item for row in spark.sql(f"select value.item from {name} order by offset").collect()] == [
        row and row.item for row in rows
    ]
    # A newer version changes nothing for a table that is there, and a new one has its columns.
    registry.add(f"{topic}-value", record(("item", "string"), ("more", "int", 1)))
    assert spark.sql(f"select value.id from {name} where value.id is not null").count() == 3
    penstock.spark.catalog(
        spark,
        bootstrap=broker.bootstrap,
        topics=[topic],
        options={"valueFormat": "avro", "schema.registry.url": registry.url},
        database="typed",
    )
    assert spark.sql(f"select value.more from {name} where value.more = 1").count() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"valueFormat": "avro"}, "schema.registry.url.*must say where"),
        ({"valueFormat": "xml"}, "valueFormat.*must be avro, protobuf, json"),
        ({"schema.registry.url": "http://x"}, "schema.registry.url.*has a meaning with 'valueFormat'"),
        ({"valueSubject": "x"}, "valueSubject.*has a meaning with 'valueFormat'"),
        ({"valueFormat": "avro", "schema.registry.url": "nowhere"}, "'nowhere' is not an address"),
        ({"valueFormat": "avro", "schema.registry.url": "http://x", "schema.registry.frob": "1"}, "frob"),
        (
            {"valueFormat": "avro", "schema.registry.url": "http://x", "valueSchema": "nonsense"},
            "is not JSON",
        ),
    ],
)
def test_wrong_options_are_named(read_topic: ReadTopic, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException, match=message):
        read_topic("any", **options)


def test_only_the_columns_that_are_named_are_there(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    records, rows = orders(registry, f"{topic}-value")
    produce(broker.bootstrap, topic, [*records, {"value": "broken", "headers": [("a", b"b")]}])
    options = {"valueFormat": "avro", "schema_registry_url": registry.url}
    frame = read_topic(topic, columns="offset, Value", includeErrors="true", **options)
    assert frame.columns == ["value", "offset", "valueError"]
    assert [row.value for row in frame.orderBy("offset").collect()] == [*rows, None]
    with pytest.raises(PySparkException, match=f"the value of {topic}-0 at offset 4"):
        read_topic(topic, columns="value", valueMode="FAILFAST", **options).collect()
    plain = read_topic(topic, columns="key,headers", includeHeaders="true")
    assert plain.columns == ["key", "headers"]
    assert [row.key and bytes(row.key) for row in plain.collect()] == [None, None, b"gone", None, None]
    for columns, message in (
        ("nothing", "has 'nothing'"),
        ("headers", "includeHeaders"),
        ("key", "columns' leaves out"),
    ):
        with pytest.raises(PySparkException, match=message):
            read_topic(topic, columns=columns, **options)


def test_schema_type_is_what_from_avro_has(
    read_topic: ReadTopic, make_topic: MakeTopic, registry: SmallRegistry
) -> None:
    topic = make_topic()
    registry.add(
        f"{topic}-value",
        record(
            ("n", "null"), ("u", ["null", "string", "int"]), ("m", {"type": "map", "values": "float"}),
            ("l", {"type": "long", "logicalType": "local-timestamp-micros"}), ("nl", ["long", "int"]),
        ),
    )  # fmt: skip
    found = read_topic(topic, valueFormat="avro", schema_registry_url=registry.url).schema["value"].dataType
    assert isinstance(found, StructType)
    assert found.simpleString() == (
        "struct<n:void,u:struct<member0:string,member1:int>,m:map<string,float>,l:timestamp_ntz,nl:bigint>"
    )


def test_functions_read_and_write_columns(spark: SparkSession, registry: SmallRegistry) -> None:
    made = spark.sql(
        "select named_struct('id', id, 'at', timestamp_millis(id), 'tags', array('a', null)) as order from range(3) "
        "union all select null"
    )
    written = made.withColumn(
        "bytes", penstock.spark.to_registry("order", "fun-value", url=registry.url)
    ).cache()
    kept = written.collect()
    assert [row.bytes and bytes(row.bytes)[:1] for row in kept] == [b"\0", b"\0", b"\0", None]
    read = written.select(penstock.spark.from_registry("bytes", "fun-value", url=registry.url).alias("order"))
    assert read.schema["order"].dataType.simpleString() == "struct<id:bigint,at:timestamp,tags:array<string>>"
    assert [row.order for row in read.collect()] == [row.order for row in kept]
    broken = spark.sql("select encode('nothing', 'utf-8') as bytes")
    with_errors = penstock.spark.from_registry("bytes", "fun-value", url=registry.url, with_errors=True)
    (row,) = broken.select(with_errors.alias("found")).collect()
    assert row.found == Row(value=None, error="the value does not begin with the id of a schema")
    failing = penstock.spark.from_registry("bytes", "fun-value", url=registry.url, mode="FAILFAST")
    with pytest.raises(PySparkException, match="a value is not read: the value does not begin"):
        broken.select(failing).collect()
    with pytest.raises(Exception, match="has no schema for 'nowhere'"):
        penstock.spark.from_registry("bytes", "nowhere", url=registry.url)


@pytest.mark.usefixtures("spark")
def test_the_programs_of_the_page_run_one_after_the_other(
    broker: PenstockBroker, read_topic: ReadTopic, registry: SmallRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"page_orders_{os.getpid()}"
    create_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, f"broken-{topic}")
    known: dict[str, object] = {}
    for program in blocks((HOW_TO / "schemas-in-spark.md").read_text(), "py"):
        here = program.replace("localhost:9092", broker.bootstrap).replace(
            "http://localhost:8081", registry.url
        )
        exec(here.replace('"orders"', f'"{topic}"').replace("broken-orders", f"broken-{topic}"), known)
        produce(broker.bootstrap, topic, [{"value": "no value of a schema"}])
    assert capsys.readouterr().out.count("tea") == 2
    assert [bytes(value) for value in values(read_topic(f"broken-{topic}"))] == [b"no value of a schema"]


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Old { int32 id = 1; }
message Order {
  int64 id = 1;
  string item = 2;
  repeated string tags = 3;
  map<string, int32> counts = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.StringValue note = 6;
  Kind kind = 7;
  Inner inner = 8;
  message Inner { optional uint32 x = 1; }
  enum Kind { NONE = 0; WEB = 1; }
}
"""
PROTO_TYPE = (
    "struct<id:bigint,item:string,tags:array<string>,counts:map<string,int>,at:timestamp,note:string,kind:string,"
    "inner:struct<x:bigint>>"
)


def test_protobuf_is_written_and_read(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    registry: SmallRegistry,
) -> None:
    topic = make_topic()
    frame = spark.sql(
        "select named_struct('id', 7L, 'item', 'tea', 'tags', array('a', 'b'), 'counts', map('x', 1), 'at', "
        "timestamp'2024-02-29 10:00:00', 'note', 'n', 'kind', 'WEB', 'inner', named_struct('x', 3L)) as value "
        "union all select null"
    )
    of_order = {"valueFormat": "protobuf", "valueMessage": "shop.Order"}
    save(frame, broker, registry, topic=topic, valueSchema=PROTO, exactlyOnce="true", **of_order)
    produce(broker.bootstrap, topic, [{"value": b"\0\0\0\0\1\0\0"}, {"value": b"x"}])
    read = read_topic(topic, schema_registry_url=registry.url, includeErrors="true", **of_order)
    assert read.schema["value"].dataType.simpleString() == PROTO_TYPE
    rows = read.collect()
    found = [row.value for row in rows if row.value is not None]
    assert found == [
        Row(
            id=7, item="tea", tags=["a", "b"], counts={"x": 1}, at=dt.datetime(2024, 2, 29, 10), note="n", kind="WEB",
            inner=Row(x=3),
        )
    ]  # fmt: skip
    assert sum(row.valueError is not None for row in rows) == 2
    first = read_topic(topic, schema_registry_url=registry.url, valueFormat="protobuf", includeErrors="true")
    assert first.schema["value"].dataType.simpleString() == "struct<id:int>"
    assert "another message" in " ".join(row.valueError or "" for row in first.collect())
    # Without a schema one is made of the columns.
    other = make_topic()
    made = spark.sql(
        "select named_struct('id', 1L, 'in', named_struct('a', array(1.5d)), 'm', map('k', 'v')) as value"
    )
    save(made, broker, registry, topic=other, valueFormat="protobuf")
    again = read_topic(other, schema_registry_url=registry.url, valueFormat="protobuf")
    assert values(again) == [Row(id=1, **{"in": Row(a=[1.5])}, m={"k": "v"})]


def test_json_is_written_and_read(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    registry: SmallRegistry,
) -> None:
    topic = make_topic()
    made = spark.sql(
        "select named_struct('id', 1L, 'price', 1.5d, 'tags', array('a'), 'm', map('k', true), 'in', "
        "named_struct('x', 'é')) as value"
    )
    save(made, broker, registry, topic=topic, valueFormat="json")
    produce(
        broker.bootstrap,
        topic,
        [{"value": b"\0\0\0\0\1[1]"}, {"value": b'{"id":2}'}, {"value": b'\0\0\0\0\1{"id":"x"}'}],
    )
    read = read_topic(topic, schema_registry_url=registry.url, valueFormat="json", includeErrors="true")
    assert read.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,price:double,tags:array<string>,m:map<string,boolean>,in:struct<x:string>>"
    )
    rows = read.orderBy("valueError").collect()
    assert [row.value for row in rows if row.valueError is None] == [
        Row(id=1, price=1.5, tags=["a"], m={"k": True}, **{"in": Row(x="é")})
    ]
    assert sorted(row.valueError for row in rows if row.valueError) == [
        "a field has another type than its schema says",
        "the value does not begin with the id of a schema",
        "the value is no JSON object",
    ]
