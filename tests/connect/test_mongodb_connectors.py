"""MongoDB's sink and source, against mongo-java-server: not MongoDB's own, which no package registry has."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.synchronous.change_stream import ChangeStream

from penstock.connect.connectors.mongodb.sink import MongoSink
from penstock.connect.connectors.mongodb.source import MongoSource
from penstock.connect.data import INT64, STRING, struct
from penstock.connect.data.logical import decimal
from penstock.connect.errors import InvalidConfig, RetriableError
from penstock.connect.testing import SinkTest, SourceTest
from penstock.testing.processes import free_port
from tests.connect.databases import Server, answers
from tests.connect.jars import class_path_of

ORDER = struct("order", id=INT64, note=STRING.optional(), price=decimal(2).optional())
_numbers = itertools.count(1)


class MongoJavaServer(Server):
    name = "mongo-java-server"

    def command(self) -> Sequence[str | Path]:
        return [
            sys.executable,
            "-m",
            "tests.connect.mongo_server",
            str(self.port),
            class_path_of("mongo-java-server"),
        ]

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/?retryWrites=false"

    def client(self) -> MongoClient[dict[str, Any]]:
        return MongoClient(self.uri, serverSelectionTimeoutMS=5000)

    def is_ready(self) -> bool:
        with self.client() as client:
            return answers(client.server_info)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoJavaServer]:
    with MongoJavaServer(tmp_path_factory.mktemp("mongo")) as running:
        yield running


@pytest.fixture
def shop(server: MongoJavaServer) -> Iterator[Any]:
    with server.client() as client:
        yield client[f"shop{next(_numbers)}"]


def sink(server: MongoJavaServer, shop: Any, **more: str) -> SinkTest:
    config = {"connection.uri": server.uri, "database": shop.name, "collection": "orders",
              **{name.replace("_", "."): value for name, value in more.items()}}  # fmt: skip
    return SinkTest(MongoSink, config, partitions=[("orders", 0)])


def documents(shop: Any) -> list[dict[str, Any]]:
    return sorted(shop.orders.find(), key=lambda one: str(one["_id"]))


def test_a_document_is_found_by_its_record_s_key_replaced_and_deleted(
    server: MongoJavaServer, shop: Any
) -> None:
    with sink(server, shop, document_id_strategy="FullKeyStrategy", delete_on_null_values="true") as test:
        test.record(ORDER.new(id=1, note="a", price=Decimal("1.50")), key=1, value_schema=ORDER)
        test.record({"id": 2, "more": [1, {"x": 2}]}, key="two")
        test.record('{"id": 3}', key=3)
        test.record({"id": 1}, key=1)
        test.deliver()
        assert documents(shop) == [
            {"_id": 1, "id": 1},
            {"_id": 3, "id": 3},
            {"_id": "two", "id": 2, "more": [1, {"x": 2}]},
        ]
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        test.deliver()
        test.record(None, key="two")
        test.deliver()
        assert [one["_id"] for one in documents(shop)] == [1, 3]


def test_what_is_written_again_is_there_once_by_the_place_of_its_record(
    server: MongoJavaServer, shop: Any
) -> None:
    strategy = {"document_id_strategy": "com.mongodb.kafka.connect.sink.processor.id.strategy.KafkaMetaDataStrategy",
                "writemodel_strategy": "InsertOneDefaultStrategy", "max_batch_size": "2"}  # fmt: skip
    with sink(server, shop, **strategy) as test:
        test.put({"n": 1}, {"n": 2}, {"n": 3})
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        test.record({"n": 4})
        test.deliver()
    assert [(one["_id"], one["n"]) for one in documents(shop)] == [(f"orders#0#{n}", n + 1) for n in range(4)]


def test_an_update_keeps_other_fields_and_a_business_key_finds_its_document(
    server: MongoJavaServer, shop: Any
) -> None:
    with sink(
        server,
        shop,
        document_id_strategy="ProvidedInValueStrategy",
        writemodel_strategy="UpdateOneDefaultStrategy",
    ) as test:
        test.put({"_id": 1, "a": 1, "b": 1}, {"_id": 1, "b": 2})
    assert documents(shop) == [{"_id": 1, "a": 1, "b": 2}]
    fields = {
        "document.id.strategy.partial.value.projection.list": "code",
        "writemodel.strategy": "ReplaceOneBusinessKeyStrategy",
    }
    with sink(server, shop, **fields) as test:
        test.put({"code": "x", "n": 1}, {"code": "x", "n": 2})
    assert [one["n"] for one in documents(shop) if "code" in one] == [2]


def test_what_makes_no_document_is_reported_and_the_rest_is_there(server: MongoJavaServer, shop: Any) -> None:
    with sink(server, shop, document_id_strategy="FullKeyStrategy", errors_tolerance="all") as test:
        test.record({"n": 2**70}, key=1)
        test.record(5, key=2)
        test.record({"n": 3})
        test.record({"n": 4}, key=4)
        test.deliver()
        assert [one["_id"] for one in documents(shop)] == [4]
        assert sorted(report.record.original[2] for report in test.reports)[-2:] == [1, 2]


def test_a_server_that_is_away_is_asked_again(shop: Any) -> None:
    config = {
        "connection.uri": f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=50",
        "database": "x",
    }
    with SinkTest(MongoSink, config) as test, pytest.raises(RetriableError):
        test.put({"n": 1})


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """MongoDB says when a stream begins, and PyMongo wants to hear it; this server leaves it out."""
    take = ChangeStream._process_result

    def timed_result(stream: Any, result: dict[str, Any]) -> None:
        result.setdefault("operationTime", Timestamp(int(time.time()), 1))
        take(stream, result)

    monkeypatch.setattr(ChangeStream, "_process_result", timed_result)


@pytest.mark.usefixtures("timed")
def test_changes_go_on_behind_the_last_token_that_was_kept(server: MongoJavaServer, shop: Any) -> None:
    shop.orders.insert_one({"_id": 0, "old": True})
    config = {"connection.uri": server.uri, "database": shop.name, "collection": "orders", "topic.prefix": "in",
              "publish.full.document.only": "true", "poll.await.time.ms": "50",
              "publish.full.document.only.tombstone.on.delete": "true"}  # fmt: skip
    with SourceTest(MongoSource, config) as test:
        test.poll()
        shop.orders.insert_one({"_id": 1, "n": 1})
        (found,) = test.poll_until(1)
        assert (found.topic, json.loads(found.value), json.loads(found.key)) == (
            f"in.{shop.name}.orders", {"_id": 1, "n": 1}, {"_id": 1},
        )  # fmt: skip
        test.commit()
        shop.orders.update_one({"_id": 1}, {"$set": {"n": 2}})
        assert json.loads(test.poll_until(1)[0].value)["n"] == 2
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        shop.orders.delete_one({"_id": 1})
        assert [record.value and json.loads(record.value)["n"] for record in test.poll_until(2)] in (
            [2, None],
            [None, None],
        )


@pytest.mark.usefixtures("timed")
def test_what_is_there_is_copied_before_changes(server: MongoJavaServer, shop: Any) -> None:
    shop.orders.insert_many([{"_id": n, "n": n} for n in range(3)])
    config = {"connection.uri": server.uri, "database": shop.name, "collection": "orders", "startup.mode": "copy_existing",
              "poll.await.time.ms": "50", "poll.max.batch.size": "2", "topic.namespace.map": '{"*": "all"}'}  # fmt: skip
    with SourceTest(MongoSource, config) as test:
        test.poll_until(3)
        shop.orders.insert_one({"_id": 3, "n": 3})
        test.poll_until(1)
        events = [json.loads(record.value) for record in test.records]
        assert [event["fullDocument"]["n"] for event in events] == [0, 1, 2, 3]
        assert {event["operationType"] for event in events} == {"insert"}
        assert {record.topic for record in test.records} == {"all"}
        test.restart()
        shop.orders.insert_one({"_id": 4, "n": 4})
        test.poll_until(1)
        assert json.loads(test.records[-1].value)["fullDocument"]["n"] == 4
        assert len(test.records) == 5, "it is copied once"


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        (MongoSink, {}, "Name the database"),
        (MongoSink, {"database": "d", "writemodel.strategy": "Some"}, "There is no Some"),
        (MongoSink, {"database": "d", "delete.on.null.values": "true"}, "found by its key"),
        (MongoSource, {"pipeline": "{}"}, "no JSON list"),
        (MongoSource, {"startup.mode": "timestamp"}, "Seconds since 1970"),
    ],
)
def test_what_does_not_go_together_is_refused(kind: Any, more: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        (SinkTest if kind is MongoSink else SourceTest)(kind, more)
