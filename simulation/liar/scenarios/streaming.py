"""The Python parts of the Spark source, called as Spark calls them: plans of the driver, tasks, a new start after an error."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from penstock.client.errors import ReadFailed
from penstock.spark.failures import DataLoss
from penstock.spark.options import read_options
from penstock.spark.reading import task
from penstock.spark.source import TopicStreamReader, source_schema
from simulation.liar.act import Act, Over, difference
from simulation.liar.world import numbered

TASK_ATTEMPTS: Final = 4
ROUNDS_MOST: Final = 4

StreamRow = tuple[str, int, int, bytes]
Form = dict[str, Any]
"""Offsets as Spark keeps them."""


def read_stream(act: Act) -> None:
    """Every record once, whatever the query was told; where records are deleted, those may be missing or an error."""
    query = _Query(act)
    try:
        for _ in range(act.chance.randint(2, ROUNDS_MOST)):
            query.grow()
            query.catch_up()
            if act.chance.random() < 0.2:
                query.lose_records()
        query.catch_up()
    except DataLoss:
        return  # told
    finally:
        query.close()
    query.check()


class _Query:
    """A streaming query with its checkpoint."""

    def __init__(self, act: Act) -> None:
        self._act = act
        chance = act.chance
        self._topics = {
            f"{act.name}-{number}": chance.randint(1, 3) for number in range(chance.randint(1, 2))
        }
        for topic, partitions in self._topics.items():
            act.world.truth.create(topic, partitions)
        self._options = {
            "kafka.bootstrap.servers": act.liar.bootstrap,
            "subscribe": ",".join(self._topics),
            "startingOffsets": "earliest",
            "failOnDataLoss": chance.choice(("true", "false")),
            "kafka.request.timeout.ms": "1000",
            "kafka.default.api.timeout.ms": "3000",
            "kafka.fetch.max.wait.ms": "20",
            "kafka.max.partition.fetch.bytes": chance.choice(("1", "1500", "1000000")),
            "kafka.isolation.level": chance.choice(("read_committed", "read_uncommitted")),
            "minPartitions": chance.choice(("1", "4")),
        }
        if chance.random() < 0.3:
            del self._options["subscribe"]
            self._options["subscribePattern"] = f"{act.name}.*"
        self._limit: ReadLimit = chance.choice((ReadAllAvailable(), ReadMaxRows(25)))
        self._schema = source_schema(read_options(self._options, streaming=True))
        self._reader: TopicStreamReader | None = None
        self._done: Form | None = None
        self._planned: Form | None = None
        self._rows: list[StreamRow] = []
        self._written: set[StreamRow] = set()
        self._deleted: dict[tuple[str, int], int] = {}
        self._rounds = 0

    def grow(self) -> None:
        act = self._act
        for topic, partitions in self._topics.items():
            count = act.chance.randint(0, 60)
            act.world.fill(topic, numbered(f"{topic} round {self._rounds}", count, partitions))
        self._rounds += 1
        for topic, partitions in self._topics.items():
            self._written.update((topic, *row) for row in act.world.truth.rows(topic, range(partitions)))
        if self._rounds == 1:
            act.begin()

    def lose_records(self) -> None:
        topic = self._act.chance.choice(sorted(self._topics))
        ends = [offset for name, partition, offset, _ in self._written if (name, partition) == (topic, 0)]
        if ends:
            first = self._act.chance.randint(1, max(ends) + 1)
            self._act.world.truth.delete_records(topic, 0, first)
            self._deleted[topic, 0] = max(first, self._deleted.get((topic, 0), 0))

    def catch_up(self) -> None:
        """Batch by batch until the cluster has no more."""
        while True:
            is_healthy = not self._act.liar.is_lying
            try:
                if not self._run_batch():
                    return
            except (ReadFailed, DataLoss) as error:
                self._act.met(error)
                self._stop()
                self._judge(error, is_healthy)

    def _judge(self, error: Exception, is_healthy: bool) -> None:
        act = self._act
        if isinstance(error, DataLoss):
            if self._deleted:
                raise error
            act.wrong(f"a loss is told and there is none: {error}")
            raise Over from error
        if is_healthy or not act.is_time_left():
            act.wrong(f"fails though the cluster is healthy: {error}")
            raise Over from error

    def _run_batch(self) -> bool:
        if self._reader is None:
            self._reader = TopicStreamReader(self._options, self._schema)
        reader = self._reader
        if self._done is None:
            self._done = reader.initialOffset()
        if self._planned is None:
            end = reader.latestOffset(self._done, self._limit)
            if end == self._done:
                return False
            self._planned = end
        parts = reader.partitions(self._done, self._planned)
        rows = [row for part in parts for row in self._run_task(reader, part)]
        self._rows += rows
        self._done, self._planned = self._planned, None
        return True

    def _run_task(self, reader: TopicStreamReader, part: Any) -> list[StreamRow]:
        """Spark gives a task several attempts before the query fails."""
        for attempt in range(1, TASK_ATTEMPTS + 1):
            try:
                return [row for batch in reader.read(part) for row in _rows(batch)]
            except ReadFailed as error:
                self._act.met(error)
                if attempt == TASK_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()
            self._reader = None

    def close(self) -> None:
        self._stop()
        for identity in [each for each in task._clients if self._act.liar.bootstrap in dict(each).values()]:
            task._clients.pop(identity).close()

    def check(self) -> None:
        found, expected = Counter(self._rows), Counter(self._written)
        gone = Counter(
            row
            for row in self._written
            if row[2] < self._deleted.get((row[0], row[1]), 0) and row not in found
        )
        differs = difference(found, expected - gone)
        if differs is not None:
            kind = {name: self._options.get(name) for name in ("failOnDataLoss", "subscribePattern")}
            self._act.wrong(f"the stream {kind}: {differs}")


def _rows(batch: Any) -> list[StreamRow]:
    columns = (
        batch.column(batch.schema.get_field_index(name)).to_pylist()
        for name in ("topic", "partition", "offset", "value")
    )
    return list(zip(*columns, strict=True))
