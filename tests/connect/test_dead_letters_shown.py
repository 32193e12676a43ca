"""`penstock dlq` with the dead letters of Connect's connectors: where they came from and why, and back to their topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.cli.verbs.app import run
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.connect.workers import STRINGS, Reading, Worker, closing, until

PREFIX = "__connect.errors."


def shown(broker: PenstockBroker, topic: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["dlq", "show", topic, "-b", broker.bootstrap, "-o", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_letters_of_a_sink_say_where_they_came_from_and_go_back_there(
    broker: PenstockBroker, tmp_path: Path, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = f"{topic_name}-dead"
    create_topic(broker.bootstrap, topic_name, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (b'{"a": 1}', b"no json"):
        producer.produce(topic_name, value, key=b"k", partition=1, headers=[("own", b"1")])
    assert producer.flush(30) == 0
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "key.converter": STRINGS,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "consumer.auto.offset.reset": "earliest",
    }
    worker = Worker(tmp_path, properties, kind="standalone")
    with closing(worker):
        config = {
            "connector.class": "FileStreamSink",
            "topics": topic_name,
            "file": str(tmp_path / "out"),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        worker.create("keeps", config)
        reading = Reading(broker.bootstrap, dead)
        with closing(reading):
            reading.wait(1)
        until(lambda: (tmp_path / "out").exists(), "the good record")
        worker.call("PUT", "/connectors/keeps/stop")
        worker.wait_for("keeps", "STOPPED")
    (letter,) = shown(broker, dead, capsys)
    assert letter["value"] == "no json"
    assert letter["origin"]["topic"] == topic_name
    assert (letter["origin"]["partition"], letter["origin"]["offset"]) == (1, 1)
    assert letter["origin"]["group"] == "keeps"
    assert letter["origin"]["headers"] == [{"name": "own", "value": "1"}]
    assert letter["failure"]["cause"] == "org.apache.kafka.connect.errors.DataException"
    assert letter["failure"]["stack"]
    assert run(["dlq", "show", dead, "-b", broker.bootstrap]) == 0
    assert f"{topic_name} 1/1" in capsys.readouterr().out
    assert run(["dlq", "replay", dead, "-b", broker.bootstrap, "--cause", "DataException"]) == 0
    assert f"replayed 1 to {topic_name}" in capsys.readouterr().err
    (letter,) = shown(broker, dead, capsys)
    assert letter["replayed"] is True
    again = Reading(broker.bootstrap, topic_name)
    with closing(again):
        assert sorted(again.wait(3)) == ["no json", "no json", '{"a": 1}']


def test_a_letter_of_a_source_never_was_in_a_topic_and_does_not_go_there_by_itself(
    broker: PenstockBroker, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dead, other = f"{topic_name}-dead", f"{topic_name}-other"
    for name in (topic_name, dead, other):
        create_topic(broker.bootstrap, name)
    said = {
        "topic": topic_name,
        "source.partition": '{"f":1}',
        "connector.name": "c",
        "exception.class.name": "E",
    }
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(dead, b"v", headers=[(PREFIX + name, text.encode()) for name, text in said.items()])
    producer.produce(dead, b"w", headers=[(PREFIX + "topic", b"t"), (PREFIX + "offset", b"\xff")])
    assert producer.flush(30) == 0
    first, second = shown(broker, dead, capsys)
    assert (first["origin"]["partition"], first["origin"]["offset"]) == (-1, -1)
    assert "origin" not in second, "who does not say why is no dead letter"
    assert run(["dlq", "replay", dead, "-b", broker.bootstrap]) == 0
    told = capsys.readouterr().err
    assert "replayed nothing" in told
    assert "2 records are not dead letters" in told
    assert run(["dlq", "replay", dead, "-b", broker.bootstrap, "--to", other]) == 0
    assert f"replayed 2 to {other}" in capsys.readouterr().err
