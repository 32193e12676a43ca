"""Records to what Spark writes, and what Spark reads to records: each task with its own Spark."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from signal import SIGKILL
from typing import Any, ClassVar

import pyarrow.parquet as parquet
import pytest

from penstock.connect.connectors.side_process import SideProcess
from penstock.connect.connectors.spark import driving
from penstock.connect.connectors.spark.sink import SparkSink
from penstock.connect.connectors.spark.source import SparkSource
from penstock.connect.data import FLOAT64, INT64, STRING, Schema, Type, array, map_of, struct
from penstock.connect.data.logical import DATE, TIMESTAMP, decimal
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.testing import SinkTest, SourceTest

ORDER = struct("order", id=INT64, note=STRING.optional(), price=FLOAT64.optional())
ODD = struct("odd", id=INT64, anything=Schema(Type.ARRAY, holds_nulls=True, is_optional=True))


class Shared(SideProcess):
    """One driver for tests that need no fresh one: a session takes its time to start. One that was reading is not used again:
    while it reads, it hears of nothing else."""

    running: ClassVar[Shared | None] = None
    has_read: ClassVar[bool] = False
    process: SideProcess

    def __init__(self, module: str) -> None:
        cls = type(self)
        if cls.running is not None and cls.has_read:
            SideProcess.close(cls.running)
            cls.running, cls.has_read = None, False
        if cls.running is None:
            super().__init__(module)
            cls.running = self
        self.process, self._module = cls.running, module
        self._is_opened = False

    def send(self, *message: Any) -> None:
        type(self).has_read |= message[0] == "read"
        SideProcess.send(self.process, *message)

    def receive(self, timeout_s: float) -> Any:
        """Without what the task before has left behind."""
        found = SideProcess.receive(self.process, timeout_s)
        while not self._is_opened and found is not None:
            if found[0] == "opened":
                self._is_opened = True
                return found
            found = SideProcess.receive(self.process, timeout_s)
        return found

    def close(self) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    if Shared.running is not None:
        SideProcess.close(Shared.running)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "SideProcess", Shared)


LOCAL = {"spark.master": "local[1]"}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found = []
    for file in sorted(folder.rglob("*.parquet")):
        for row in parquet.ParquetFile(file).read().to_pylist():
            found.append({**row, **dict(part.split("=") for part in file.parts if "=" in part)})
    return found


@pytest.mark.usefixtures("shared")
def test_a_batch_that_was_written_and_not_marked_is_the_same_when_it_is_written_again(tmp_path: Path) -> None:
    config = {
        **LOCAL, "spark.format": "parquet", "spark.path": str(tmp_path / "out"),
        "spark.checkpoint.location": str(tmp_path / "checkpoint"), "spark.metadata.columns": "partition,offset",
        "errors.tolerance": "all",
    }  # fmt: skip
    with SinkTest(SparkSink, config, partitions=[("orders", 0), ("orders", 1)], max_tasks=3) as test:
        assert len(test.task_configs) == 1, "Spark divides the work"
        test.record(ORDER.new(id=1, note="a", price=1.5), value_schema=ORDER)
        test.record(ORDER.new(id=2), value_schema=ORDER)
        test.record(None, value_schema=ORDER)
        test.put(ODD.new(id=9), value_schema=ODD)
        test.commit()
        assert len(test.reports) == 1, "what is no row is refused"
        test.record(ORDER.new(id=3), partition=1, value_schema=ORDER)
        test.put({"id": 4, "price": 2.0, "more": [1, 2]})
        test.commit()
        assert test.committed == {("orders", 0): 5, ("orders", 1): 1}
        # As after a crash between the batch and its mark, and before the commit of the group's offsets.
        (tmp_path / "checkpoint/commits/1").unlink()
        test.committed.clear()
        test.record(ORDER.new(id=5), partition=1, value_schema=ORDER)
        test.restart()
        test.deliver()
        test.commit()
        assert test.committed == {("orders", 0): 5, ("orders", 1): 2}
    found = rows_of(tmp_path / "out")
    assert sorted((row["id"], row["batch_id"], row["record_partition"], row["record_offset"]) for row in found) == [
        (1, "0", 0, 0), (2, "0", 0, 1), (3, "1", 1, 0), (4, "1", 0, 4), (5, "2", 1, 1),
    ]  # fmt: skip
    assert next(row for row in found if row["id"] == 4)["more"] == [1, 2]


def batch_taken(frame: Any, number: int | None) -> None:
    frame.coalesce(1).write.mode("overwrite").json(f"{frame.first()['out']}/{number}")


@pytest.mark.usefixtures("shared")
def test_a_function_gets_batches_with_columns_as_they_are_wanted_and_any_format_is_read_in_pieces(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    config = {
        **LOCAL, "spark.format": "noop", "spark.batch.rows": "2",
        "spark.foreach.batch": "tests.connect.test_spark_connectors:batch_taken",
        "spark.schema": "id INT, absent STRING, out STRING",
        "spark.checkpoint.location": str(tmp_path / "checkpoint"),
    }  # fmt: skip
    with SinkTest(SparkSink, config) as test:
        to = {"out": str(out)}
        test.put({"id": 1, **to}, {"id": 2, **to})
        assert [json.loads(line) for line in next((out / "0").glob("*.json")).read_text().splitlines()] == [
            {"id": 1, **to}, {"id": 2, **to},
        ]  # fmt: skip
        test.put({"id": 3, **to})
        test.commit()
        with pytest.raises(ConnectError, match="CAST_INVALID_INPUT"):
            test.put({"id": "no number", **to}, {"id": "x", **to})

    read = {**LOCAL, "spark.format": "json", "spark.path": str(out / "*"), "spark.schema": "id LONG", "topic": "t",
            "spark.poll.rows": "2"}  # fmt: skip
    with SourceTest(SparkSource, read, real_waits=True) as source:
        first = source.poll_until(2, within_s=60)
        assert [record.value["id"] for record in first] == [1, 2] or len(first) == 1
        source.commit()
        kept = source.offsets
        source.crash()
        source.poll_until(3 - len(first), within_s=60)
        assert sorted(record.value["id"] for record in source.records) == [1, 2, 3]
        assert kept != source.offsets or source.commit() is None


@pytest.mark.usefixtures("shared")
def test_an_unknown_format_says_so_in_spark_s_words() -> None:
    with (
        SourceTest(
            SparkSource, {**LOCAL, "spark.format": "nothing", "topic": "t"}, real_waits=True
        ) as source,
        pytest.raises(ConnectError, match="DATA_SOURCE_NOT_FOUND"),
    ):
        source.poll_until(1, within_s=60)


@pytest.mark.usefixtures("shared")
def test_a_stream_goes_on_where_it_was_and_gives_all_types(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    wide = struct(
        None, id=INT64.optional(), price=decimal(2).optional(), day=DATE.optional(), at=TIMESTAMP.optional(),
        tags=array(STRING.optional()).optional(), by=map_of(STRING, INT64.optional()).optional(),
        inner=struct(None, a=STRING.optional()).optional(),
    )  # fmt: skip
    ddl = "id LONG, price DECIMAL(10,2), day DATE, at TIMESTAMP, tags ARRAY<STRING>, by MAP<STRING,LONG>, inner STRUCT<a: STRING>"

    def write(name: str, *numbers: int) -> None:
        folder.mkdir(exist_ok=True)
        draft = tmp_path / name
        draft.write_text("".join(
            json.dumps({"id": number, "price": 1.25, "day": "2026-02-03", "at": "2026-02-03T04:05:06Z", "tags": ["x", None],
                        "by": {"k": 1}, "inner": {"a": "b"}}) + "\n" for number in numbers
        ))  # fmt: skip
        draft.rename(folder / name)

    write("1.json", 1, 2)
    config = {**LOCAL, "spark.format": "json", "spark.path": str(folder), "spark.schema": ddl, "topic": "t",
              "spark.mode": "stream", "spark.checkpoint.location": str(tmp_path / "checkpoint"),
              "spark.trigger.interval.ms": "50"}  # fmt: skip
    with SourceTest(SparkSource, config, real_waits=True) as source:
        found = source.poll_until(2, within_s=60)
        assert found[0].value == wide.new(
            id=1, price=Decimal("1.25"), day=dt.date(2026, 2, 3), at=dt.datetime(2026, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
            tags=["x", None], by={"k": 1}, inner=wide.field("inner").schema.new(a="b"),  # type: ignore[union-attr]
        )  # fmt: skip
        source.commit()
        write("2.json", 3)
        source.poll_until(1, within_s=60)
        # The stream's checkpoint, and what Connect keeps, are both behind what was delivered.
        assert Shared.running is not None
        os.kill(Shared.running.pid, SIGKILL)
        SideProcess.close(Shared.running)
        Shared.running = None
        source.crash()
        source.poll_until(1, within_s=60)
        write("3.json", 4)
        while source.records[-1].value["id"] != 4:
            source.poll_until(1, within_s=60)
        numbers = [record.value["id"] for record in source.records]
        assert numbers in ([1, 2, 3, 3, 4], [1, 2, 3, 4]), "again at most what was not kept"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"spark.mode": "stream"}, "needs a folder"),
        ({"spark.master": "sc://somewhere:1"}, "Spark Connect"),
        ({"spark.table": "t", "spark.path": "p"}, "a path already"),
    ],
)
def test_a_source_that_cannot_work_is_refused(more: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        SourceTest(SparkSource, {"spark.format": "json", "topic": "t", **more})
