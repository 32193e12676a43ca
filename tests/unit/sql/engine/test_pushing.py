"""Push queries read topics in the order that gives the rows their meaning."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError

from penstock.sql.analysis.planned import PlannedPush
from penstock.sql.engine.pushing import Push
from tests.unit.sql.analysis.catalogs import World

EARLIEST = {"auto.offset.reset": "earliest"}


class Message:
    def __init__(self, topic: str, offset: int, value: Any, time_ms: int, error: Any = None) -> None:
        self._topic, self._offset, self._error = topic, offset, error
        self._value, self._time_ms = json.dumps(value).encode(), time_ms

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, self._time_ms

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def error(self) -> Any:
        return self._error


def end(topic: str) -> Message:
    return Message(topic, 0, None, 0, KafkaError(KafkaError._PARTITION_EOF))


class Client:
    """Batches, as a consumer would give them."""

    def __init__(self, *batches: list[Message]) -> None:
        self._batches = [*batches]
        self._rest: list[Message] = []

    def consumer(self, settings: dict[str, str]) -> Client:
        return self

    def poll(self, timeout_s: float) -> Message | None:
        if not self._batches:
            return None
        first, *self._rest = self._batches.pop(0)
        return first

    def consume(self, most: int, timeout_s: float) -> list[Message]:
        rest, self._rest = self._rest, []
        return rest

    def assign(self, places: Any) -> None:
        pass

    def close(self) -> None:
        pass


def rows(world: World, text: str, count: int, *batches: list[Message]) -> list[Any]:
    planned = world.run(text)
    assert isinstance(planned, PlannedPush)
    world.properties.update(EARLIEST)
    engine: Any = SimpleNamespace(
        options={"ksql.query.push.buffer.rows": 100},
        world=lambda properties: world,
        schemas=None,
        connection=Client(*batches),
        open_pushes={},
    )
    results = Push(engine, planned, EARLIEST).results

    async def taken() -> list[Any]:
        found: list[Any] = []
        async with asyncio.timeout(20):
            while len(found) < count and (more := await results.take()):
                found += more
        return [row.values for row in found]

    try:
        return asyncio.run(taken())
    finally:
        results.close()


def world() -> World:
    made = World()
    made.run(
        "CREATE STREAM S (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE T (ID STRING PRIMARY KEY, NAME STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    return made


def test_the_records_of_a_partition_keep_their_order_whatever_their_times_are() -> None:
    batch = [Message("s", n, {"N": n}, 1000 - n) for n in range(4)]
    assert rows(world(), "SELECT N FROM S EMIT CHANGES;", 4, batch) == [(n,) for n in range(4)]


def test_a_stream_waits_for_the_table_that_it_is_joined_with() -> None:
    text = "SELECT N, NAME FROM S LEFT JOIN T ON S.ID = T.ID EMIT CHANGES;"
    found = rows(
        world(), text, 1,
        [Message("s", 0, {"N": 1}, 2000), end("s")],
        [Message("t", 0, {"NAME": "v"}, 1000), end("t")],
    )  # fmt: skip
    assert found == [(1, "v")]
