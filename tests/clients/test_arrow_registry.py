"""Topics as tables whose values have schemas of a registry."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer

import penstock.arrow
from penstock.arrow.query import TopicQuery
from penstock.client.errors import BadOption, UserError
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.small_registry import small_registry

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "item", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]


def produce(broker: PenstockBroker, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, key="k", value=value)
    assert producer.flush(30) == 0


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()


def test_values_are_read_as_the_newest_schema(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic, plain = make_topic(), make_topic()
    with small_registry() as registry:
        old, new = registry.add(f"{topic}-value", OLD), registry.add(f"{topic}-value", NEW)
        produce(
            broker,
            topic,
            [avro(old, OLD, {"id": 1}), avro(new, NEW, {"id": 2, "item": "tea"}), b"broken", b"\0\0\0\0\x63"],
        )
        produce(broker, plain, [b"text"])
        given: Any = {
            "bootstrap": broker.bootstrap,
            "value_format": "avro",
            "schema_registry_url": registry.url,
        }
        table = penstock.arrow.read(topic, columns=["value", "offset"], **given)
        assert table["value"].to_pylist() == [{"id": 1, "item": None}, {"id": 2, "item": "tea"}, None, None]
        assert table["offset"].to_pylist() == [0, 1, 2, 3]
        with pytest.raises(UserError, match=f"no schema for '{plain}-value'"):
            penstock.arrow.read(plain, **given)
        of_any_kind = penstock.arrow.read(topic, **{**given, "value_format": "registry"})
        assert of_any_kind["value"].to_pylist() == table["value"].to_pylist()
        with pytest.raises(UserError, match="is AVRO, not PROTOBUF"):
            penstock.arrow.read(topic, **{**given, "value_format": "protobuf"})
        query = TopicQuery(
            f'select t.value.id, t.key, p.value from "{topic}" t, "{plain}" p order by 1', **given
        )
        try:
            columns, rows = query.run()
            assert columns == ["id", "key", "value"]
            assert list(rows)[:2] == [(1, "k", "text"), (2, "k", "text")]
        finally:
            query.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value_format": "xml", "schema_registry_url": "http://x"}, "value_format: 'xml' is not"),
        ({"value_format": "avro"}, "schema.registry.url: it must say where"),
        ({"schema_registry_url": "http://x"}, "with value_format or key_format only"),
        ({"value_format": "avro", "schema_registry_url": "http://x", "columns": ["key"]}, "not among those"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        penstock.arrow.read("any", bootstrap="127.0.0.1:1", **given)
