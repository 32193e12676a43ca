"""Sink tasks with a real broker: what they put, commit and leave out, and that kill -9 loses nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.connect import (
    RetriableError,
    SinkRecord,
    SinkTask,
)
from penstock.spark.tasks import ProcessLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.connect.task_jobs import (
    Collecting,
    Job,
    Reading,
    collecting,
    committed,
    kill_one,
    until,
    write,
)


def test_a_sink_puts_what_comes_and_commits_it(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a", "b", "c"], headers=[("h", b"1")])
    seen: list[SinkRecord] = []

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        seen.extend(records)

    kind, _, told = collecting(put=put)
    job = start({"topics": topic}, kind, name="putting")
    until(lambda: committed(broker, "connect-putting", topic) == [3])
    assert [(each.key, each.value, each.offset, each.original) for each in seen] == [
        (f"key-{n}", value, n, (topic, 0, n)) for n, value in enumerate("abc")
    ]
    assert seen[0].headers[0].name == "h"
    assert seen[0].timestamp_type == "CreateTime"
    assert job.status()["assignment"] == [[topic, 0]]
    assert job.long.tasks[0].counters["sink-record-read-total"] in (0, 3)
    job.stop()
    assert told == [("open", [(topic, 0)]), ("close", [(topic, 0)]), "stop"]
    write(broker, topic, ["d"])
    again = start({"topics": topic}, kind, name="putting")
    until(lambda: [each.value for each in seen] == ["a", "b", "c", "d"])
    assert again.status()["counters"]["sink-record-read-total"] == 1


def test_records_that_cannot_be_put_now_are_put_again(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a", "b"])
    tries: list[list[str]] = []

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        if records:
            tries.append([record.value for record in records])
            if len(tries) < 4:
                self.context.retry_after(0.05)
                raise RetriableError("busy")

    kind, _, _ = collecting(put=put)
    job = start({"topics": topic}, kind, name="retrying")
    until(lambda: committed(broker, "connect-retrying", topic) == [2])
    assert tries == [["a", "b"]] * 4
    assert job.status()["counters"]["total-retries"] == 3
    assert job.states() == ["RUNNING"]


def test_a_sink_that_fails_gets_the_same_records_again(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a", "b"])
    tries: list[list[str]] = []

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        if records:
            tries.append([record.value for record in records])
            if len(tries) < 3:
                raise OSError("the disk is full")

    kind, _, _ = collecting(put=put)
    job = start({"topics": topic}, kind, name="failing")
    until(lambda: committed(broker, "connect-failing", topic) == [2])
    assert tries == [["a", "b"]] * 3
    assert job.states() == ["RUNNING", "FAILED", "RESTARTING"] * 2 + ["RUNNING"]


def test_dead_letters_of_a_sink_say_where_they_are_from(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], read: Callable[..., Reading]
) -> None:
    topic = make_topic()
    letters = f"{topic}-letters"
    write(broker, topic, ['{"a":1}', "no json", '{"a":2}'], headers=[("mine", b"1")])

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if record.value["a"] == 2:
                self.context.report(record, ValueError("two is refused"))

    kind, _, _ = collecting(put=put)
    config = {
        "topics": topic, "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false", "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters, "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    job = start(config, kind, name="letters")
    until(lambda: committed(broker, "connect-letters", topic) == [3])
    found = read(letters).all()
    assert [(each.key(), each.value()) for each in found] == [(b"key-1", b"no json"), (b"key-2", b'{"a":2}')]
    headers = [dict(each.headers()) for each in found]
    prefix = "__connect.errors."
    assert headers[0]["mine"] == b"1"
    assert {name.removeprefix(prefix) for name in headers[0] if name.startswith(prefix)} == {
        "topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name", "exception.class.name",
        "exception.message", "exception.stacktrace",
    }  # fmt: skip
    assert [each[prefix + "offset"] for each in headers] == [b"1", b"2"]
    assert [each[prefix + "stage"] for each in headers] == [b"VALUE_CONVERTER", b"TASK_PUT"]
    assert headers[1][prefix + "exception.message"] == b"two is refused"
    assert job.status()["counters"]["total-records-skipped"] == 2


def test_a_bad_record_fails_the_task_where_none_is_tolerated(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["no json"])
    kind, puts, _ = collecting()
    config = {"topics": topic, "value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    job = start(config, kind, name="intolerant")
    job.wait_for("FAILED")
    trace = next(
        data["trace"] for _, name, data in job.events if name == "status" and data["state"] == "FAILED"
    )
    assert "Tolerance exceeded in error handler" in trace
    job.stop()
    assert puts == []
    assert committed(broker, "connect-intolerant", topic) == [-1001]


def test_partitions_go_over_in_order(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], worker: Any
) -> None:
    topic = make_topic(partitions=4)
    for number in range(4):
        write(broker, topic, [f"{number}-{each}" for each in range(50)], partition=number)
    kind, puts, told = collecting()
    config = {
        "topics": topic,
        "consumer.override.heartbeat.interval.ms": "300",
        "consumer.override.session.timeout.ms": "6000",
    }
    flush = {"offset_flush_interval_ms": "60000"}
    first = start(config, kind, name="moving", settings=worker(group_id="one", **flush))
    until(lambda: sum(map(len, puts)) == 200)
    assert committed(broker, "connect-moving", topic, 4) == [-1001] * 4
    other, more, _ = collecting()
    second = start(config, other, name="moving", settings=worker(group_id="two", **flush))
    second.wait_for("RUNNING")
    until(lambda: len(second.status()["assignment"]) == 2 and len(first.status()["assignment"]) == 2)
    closed = [places for kind_of, places in [each for each in told if each != "stop"] if kind_of == "close"]
    assert sum(map(len, closed)) == 2
    offsets = committed(broker, "connect-moving", topic, 4)
    assert sorted(offsets) == [-1001, -1001, 50, 50]
    first.stop()
    until(lambda: len(second.status()["assignment"]) == 4)
    second.stop()
    assert more == []
    assert committed(broker, "connect-moving", topic, 4) == [50] * 4


def test_a_sink_says_where_to_begin_and_what_waits(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic(partitions=2)
    for number in (0, 1):
        write(broker, topic, [f"{number}-{each}" for each in range(5)], partition=number)
    back: list[int] = []

    def open_(self: Collecting, partitions: Any) -> None:
        self.context.seek((topic, 0), 3)
        self.context.pause((topic, 1))

    def put(self: Collecting, records: Sequence[SinkRecord]) -> None:
        Collecting.put(self, records)
        if len(self.puts) == 1 and not back:
            back.append(1)
            self.context.seek((topic, 0), 1)
        if sum(map(len, self.puts)) == 6:
            self.context.resume((topic, 1))

    kind, puts, _ = collecting(open=open_, put=put)
    start({"topics": topic}, kind, name="seeking")
    until(lambda: committed(broker, "connect-seeking", topic, 2) == [5, 5])
    values = [value for each in puts for value in each]
    assert values == [f"0-{n}" for n in (3, 4, 1, 2, 3, 4)] + [f"1-{n}" for n in range(5)]


def test_a_sink_pauses_and_topics_are_found_by_a_pattern(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic, other = make_topic(), make_topic()
    kind, puts, _ = collecting()
    job = start({"topics.regex": f"{topic[:-1]}(?=[01])\\d"}, kind, name="pausing")
    job.wait_for("RUNNING")
    until(lambda: job.status()["assignment"] == [[topic, 0], [other, 0]])
    job.long.pause()
    job.wait_for("PAUSED")
    write(broker, topic, ["a"])
    assert puts == []
    job.long.resume()
    until(lambda: puts == [["a"]])


def test_a_sink_that_cannot_write_what_was_put_gets_it_again(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a", "b"])
    flushes: list[int] = []

    def flush(self: SinkTask, offsets: Any) -> None:
        flushes.append(1)
        if len(flushes) == 1:
            raise RetriableError("away")

    kind, puts, _ = collecting(flush=flush)
    start({"topics": topic}, kind, name="flushing")
    until(lambda: committed(broker, "connect-flushing", topic) == [2])
    assert [value for each in puts for value in each] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("kind", ["AppendingSink", "TableSink"])
def test_a_killed_sink_loses_nothing_and_repeats_nothing_where_it_keeps_its_offsets(
    kind: str, broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], tmp_path: Path
) -> None:
    topic, file = make_topic(partitions=4), tmp_path / "out"
    launcher = ProcessLauncher()
    config = {"topics": topic, "file": str(file), "consumer.override.max.poll.records": "20"}

    def found() -> Counter[str]:
        if kind == "AppendingSink":
            return Counter(file.read_text().split() if file.exists() else ())
        with sqlite3.connect(file) as db:
            return Counter(value for (value,) in db.execute("select value from records"))

    def wait_for(count: int) -> None:
        until(lambda: len(found()) >= count)

    job = start(config, kind, tasks=2, launcher=launcher)
    until(lambda: sum(len(job.status(task)["assignment"]) for task in (0, 1) if job.states(task)) == 4)
    numbers = iter(range(100_000))
    written = 0
    for kill in range(3):
        values = [str(next(numbers)) for _ in range(500)]
        write(broker, topic, values)
        written += len(values)
        wait_for(written - 480)
        kill_one(job, launcher, kill % 2)
    wait_for(written)
    if kind == "TableSink":
        assert set(found().values()) == {1}


def test_what_a_sink_wants_again_is_not_committed(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a", "b", "c"])
    found: list[list[int]] = []

    def put(self: Collecting, records: Sequence[SinkRecord]) -> None:
        Collecting.put(self, records)
        if len(self.puts) == 1:
            self.context.seek((topic, 0), 1)
            self.context.request_commit()
        elif records and not found:
            found.append(committed(broker, "connect-wanting", topic))

    kind, puts, _ = collecting(put=put)
    start({"topics": topic}, kind, name="wanting")
    until(lambda: found)
    assert found == [[1]], "a task that dies now would lose b and c"
    assert puts == [["a", "b", "c"], ["b", "c"]]


def test_a_sink_that_is_paused_is_still_called(make_topic: MakeTopic, start: Callable[..., Job]) -> None:
    """One that rotates files by the clock closes them."""
    puts: list[int] = []

    def put(self: Collecting, records: Sequence[SinkRecord]) -> None:
        puts.append(len(records))

    kind, _, _ = collecting(put=put)
    job = start({"topics": make_topic()}, kind, name="paused")
    job.wait_for("RUNNING")
    job.long.pause()
    job.wait_for("PAUSED")
    before = len(puts)
    until(lambda: len(puts) > before + 1)
    assert set(puts) == {0}
