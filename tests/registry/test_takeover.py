"""Topics that other registries have written are taken over as they are, and stay readable for them."""

import json
from pathlib import Path

from confluent_kafka import Consumer, Producer

from penstock.testing.clusters import create_topic
from penstock.testing.penstock_broker import PenstockBroker
from tests.registry.registries import RegistryProcess, code_of, record

STRING = r'"\"string\""'
OLDER = [
    ('{"keytype":"NOOP","magic":0}', None),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
    ('{"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}',
     '{"subject":"a-value","version":1,"id":1,"schema":' + STRING + ',"deleted":false}'),
    ('{"keytype":"SCHEMA","subject":"b-value","version":1,"magic":1}',
     '{"subject":"b-value","version":1,"id":1,"schema":' + STRING + ',"deleted":false}'),
    ('{"keytype":"DELETE_SUBJECT","subject":"b-value","magic":0}', '{"subject":"b-value","version":1}'),
    ('{"keytype":"MODE","subject":"a-value","magic":0}', '{"mode":"READONLY"}'),
]  # fmt: skip
NEWER = [
    ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"NONE"}'),
    ('{"keytype":"CONTEXT","tenant":"default","context":".old","magic":0}', '{"tenant":"default","context":".old"}'),
    ('{"keytype":"SCHEMA","subject":":.old:a-value","version":1,"magic":1}',
     '{ "id":7, "md5":"aaaaaaaaaaaaaaaaaaaaaa==", "version":1, "subject":":.old:a-value","schemaType":"AVRO",\n'
     '"metadata":{"properties":{"owner":"ana"}}, "schema":' + STRING + ', "deleted":false, "later":{"x":1}}'),
    ('{"keytype":"CONFIG","subject":":.old:a-value","magic":0}',
     '{"subject":":.old:a-value","normalize":true,"compatibilityLevel":"FULL_TRANSITIVE"}'),
    ('{"keytype":"ASSOC","tenant":"default","magic":0}', '{"anything":1}'),
    ('not JSON', '{}'),
    ('{"keytype":"SCHEMA","subject":"broken","version":1,"magic":1}', '[]'),
    ('{"keytype":"SCHEMA","subject":"thief","version":1,"magic":1}',
     '{"subject":"thief","version":1,"id":1,"schema":"\\"long\\"","deleted":false}'),
]  # fmt: skip


def write(broker: PenstockBroker, topic: str, rows: list[tuple[str, str | None]]) -> None:
    create_topic(
        broker.bootstrap, topic, partitions=1, replication_factor=1, config={"cleanup.policy": "compact"}
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in rows:
        producer.produce(
            topic, key=key.encode(), value=None if value is None else value.encode(), partition=0
        )
    assert producer.flush(30) == 0


def last_values(broker: PenstockBroker, topic: str) -> dict[str, str | None]:
    """By key, as a registry that reads the topic finds them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    found: dict[str, str | None] = {}
    try:
        consumer.subscribe([topic])
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                return found
            value = message.value()
            found[message.key().decode()] = None if value is None else value.decode()
    finally:
        consumer.close()


def test_an_older_topic_is_taken_over(broker: PenstockBroker, tmp_path: Path) -> None:
    write(broker, "_older", OLDER)
    registry = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": "_older"})
    try:
        assert registry.get("/config").json() == {"compatibilityLevel": "FULL"}
        assert registry.get("/subjects").json() == ["a-value"]
        assert registry.get("/subjects?deleted=true").json() == ["a-value", "b-value"]
        assert registry.get("/mode/a-value").json() == {"mode": "READONLY"}
        assert registry.register("a-value", '{"type":"string"}') == 1
        assert registry.register("b-value", '{"type":"string"}') == 1
        assert registry.register("c-value", record("C", "a")) == 2
        assert registry.delete("/config").json() == {"compatibilityLevel": "FULL"}
    finally:
        assert registry.close() == 0
    found = last_values(broker, "_older")
    assert found['{"keytype":"CONFIG","subject":null,"magic":0}'] is None
    assert found['{"keytype":"SCHEMA","subject":"c-value","version":1,"magic":1}'] == json.dumps(
        {"subject": "c-value", "version": 1, "id": 2, "schema": record("C", "a"), "deleted": False},
        separators=(",", ":"),
    )
    assert found['{"keytype":"SCHEMA","subject":"b-value","version":1,"magic":1}'] is None


def test_a_newer_topic_is_taken_over_and_what_is_not_understood_stays(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    write(broker, "_newer", OLDER + NEWER)
    registry = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": "_newer"})
    try:
        assert registry.get("/config").json() == {"compatibilityLevel": "NONE"}
        assert registry.get("/contexts").json() == [".", ".old"]
        found = registry.get("/subjects/:.old:a-value/versions/1").json()
        assert (found["id"], found["metadata"]) == (7, {"properties": {"owner": "ana"}})
        assert registry.get("/config/:.old:a-value").json() == {
            "normalize": True,
            "compatibilityLevel": "FULL_TRANSITIVE",
        }
        assert code_of(registry.get("/subjects/thief/versions/1")) == (404, 40401)
        assert registry.get("/schemas/ids/1").json() == {"schema": '"string"'}
        assert registry.delete("/subjects/:.old:a-value/versions/1").body == b"1"
    finally:
        assert registry.close() == 0
    values = last_values(broker, "_newer")
    deleted = json.loads(values['{"keytype":"SCHEMA","subject":":.old:a-value","version":1,"magic":1}'] or "")
    assert deleted["deleted"] is True
    assert (deleted["md5"], deleted["later"]) == ("aaaaaaaaaaaaaaaaaaaaaa==", {"x": 1})
    assert values['{"keytype":"ASSOC","tenant":"default","magic":0}'] == '{"anything":1}'
    assert values["not JSON"] == "{}"


def test_an_id_is_not_given_again_after_its_schema_is_gone(broker: PenstockBroker, tmp_path: Path) -> None:
    registry = RegistryProcess(broker.bootstrap, tmp_path, name="first")
    first = registry.register("once", record("Once", "a"))
    registry.delete("/subjects/once")
    registry.delete("/subjects/once?permanent=true")
    assert registry.close() == 0
    kept = last_values(broker, registry.topic)
    assert json.loads(kept['{"keytype":"NOOP","magic":0}'] or "") == {"maxIds": {".": first}}
    again = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": registry.topic}, name="second")
    try:
        assert again.register("once", record("Once", "b")) == first + 1
    finally:
        assert again.close() == 0
