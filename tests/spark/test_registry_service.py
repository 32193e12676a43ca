"""Confluent's serializers on one side, Spark on the other, and our registry between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from pyspark.sql import Row, SparkSession

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.registry.registries import RegistryProcess
from tests.spark.conftest import ReadTopic, produce

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "item", "type": ["null", "string"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "item": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
)
ORDER = {"id": 7, "item": "tea", "tags": ["hot"]}


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    service = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    yield service
    assert service.close() == 0
    assert "Traceback" not in service.log


def order_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    for number, (name, kind, label) in enumerate((("id", 3, 1), ("item", 9, 1), ("tags", 9, 3)), 1):
        message.field.add(name=name, number=number, type=kind, label=label)
    pool = DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@pytest.mark.parametrize("value_format", ["avro", "json", "protobuf"])
def test_what_confluent_s_serializers_write_is_read_and_the_reverse(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    registry: RegistryProcess,
    tmp_path: Path,
    value_format: str,
) -> None:
    topic = make_topic()
    context = SerializationContext(topic, MessageField.VALUE)
    order = order_class()
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize, deserialize, given, seen = {
            "avro": (AvroSerializer(client, AVRO), AvroDeserializer(client), ORDER, dict),
            "json": (JSONSerializer(JSON, client), JSONDeserializer(JSON), ORDER, dict),
            "protobuf": (
                ProtobufSerializer(order, client, {"use.deprecated.format": False}),
                ProtobufDeserializer(order, {"use.deprecated.format": False}),
                order(**ORDER),
                lambda found: {"id": found.id, "item": found.item, "tags": list(found.tags)},
            ),
        }[value_format]
        produce(broker.bootstrap, topic, [{"value": serialize(given, context)}])  # type: ignore[operator]
        options = {"valueFormat": value_format, "schema.registry.url": registry.url}
        frame = read_topic(topic, **options, columns="value", includeErrors="true")
        assert frame.collect() == [Row(value=Row(**ORDER), valueError=None)]
        # The same rows again, written by us.
        writer = frame.select("value").write.format("penstock").mode("append").options(**options)
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic)
        writer.options(**{"use.latest.version": "true", "exactlyOnce": "true"}).save()
        rows = read_topic(topic, kafka_isolation_level="read_committed").collect()
        assert len(rows) == 2
        for row in rows:
            assert seen(deserialize(bytes(row.value), context)) == ORDER  # type: ignore[operator]
