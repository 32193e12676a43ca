"""Source tasks with a real broker: what they write, keep and leave out, and that kill -9 loses nothing."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connect import (
    DataError,
    SourceRecord,
    SourceTask,
)
from penstock.connect.tasks import WorkerSettings
from penstock.spark.tasks import ProcessLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.connect.task_jobs import (
    DEADLINE_S,
    Job,
    Reading,
    connector_of,
    is_kept,
    kept_offsets,
    kill_one,
    once,
    source_of,
    until,
)


def test_a_source_writes_its_records_and_keeps_offsets_in_kafkas_form(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, settings = make_topic(), worker()
    place = {"filename": "ä.txt", "a": 1}
    records = [
        SourceRecord(place, {"position": n}, topic, f"v{n}", key=f"k{n}", timestamp_ms=5 + n)
        for n in range(3)
    ]
    job = start({}, source_of(once(records)), name="file", settings=settings)
    reading = read(topic)
    assert reading.values(3) == ["v0", "v1", "v2"]
    assert [(each.key(), each.timestamp()[1]) for each in reading.messages] == [
        (b"k0", 5),
        (b"k1", 6),
        (b"k2", 7),
    ]
    until(lambda: kept_offsets(settings, "file"))
    job.stop()
    assert kept_offsets(settings, "file") == {'{"a":1,"filename":"ä.txt"}': {"position": 2}}
    [kept] = read(settings.offsets_topic).all()[-1:]
    assert kept.key().decode() == '["file",{"filename":"ä.txt","a":1}]'
    assert kept.value() == b'{"position":2}'
    assert job.states() == ["RUNNING", "UNASSIGNED"]


def test_offsets_of_another_worker_keep_their_key(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    start: Callable[..., Job],
    worker: Any,
    read: Callable[..., Reading],
) -> None:
    topic, settings = make_topic(), worker()
    key = '["x",{"b":2,"a":1}]'
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(settings.offsets_topic, '{"n":7}', key=key)
    assert producer.flush(DEADLINE_S) == 0
    seen: list[Any] = []

    def poll(task: SourceTask) -> Any:
        found = task.context.offset({"a": 1, "b": 2})
        if not seen:
            seen.append(found)
            return [SourceRecord({"a": 1, "b": 2}, {"n": 8}, topic, "v")]
        task.context.wait(0.05)
        return None

    job = start({}, source_of(poll), name="x", settings=settings)
    read(topic).values(1)
    job.stop()
    assert seen == [{"n": 7}]
    assert {each.key().decode() for each in read(settings.offsets_topic).all()} == {key}


def test_what_is_left_out_counts_as_done(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, letters, settings = make_topic(), make_topic(), worker()
    config = {
        "value.converter": "org.apache.kafka.connect.converters.IntegerConverter", "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters, "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    records = [
        SourceRecord({"p": 1}, {"n": n}, topic, value) for n, value in enumerate([1, "no number", {"a": 1}])
    ]
    job = start(config, source_of(once(records)), name="left-out", settings=settings)
    until(lambda: kept_offsets(settings, "left-out") == {'{"p":1}': {"n": 2}})
    counters = job.status()["counters"]
    job.stop()
    assert len(read(topic).all()) == 1
    found = read(letters).all()
    assert [each.value() for each in found] == [b"no number", b'{"a": 1}']
    headers = dict(found[0].headers())
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.connector.name"] == b"left-out"
    assert headers["__connect.errors.class.name"] == b"org.apache.kafka.connect.converters.IntegerConverter"
    assert (
        headers["__connect.errors.exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"
    )
    assert headers["__connect.errors.source.offset"] == b'{"n":1}'
    assert (counters["total-records-skipped"], counters["deadletterqueue-produce-requests"]) == (2, 2)
    assert (counters["source-record-poll-total"], counters["source-record-write-total"]) == (3, 1)


def test_a_source_pauses_and_goes_on(
    make_topic: MakeTopic, start: Callable[..., Job], read: Callable[..., Reading]
) -> None:
    topic = make_topic()
    polls: list[int] = []

    def poll(task: SourceTask) -> Any:
        polls.append(1)
        task.context.wait(0.01)
        return [SourceRecord({}, {"n": len(polls)}, topic, "v")]

    job = start({}, source_of(poll))
    read(topic).values(1)
    job.long.pause()
    job.wait_for("PAUSED")
    count = len(polls)
    assert len(polls) == count
    job.long.resume()
    job.wait_for("RUNNING", times=2)
    until(lambda: len(polls) > count)


def test_a_coroutine_can_be_a_source(
    make_topic: MakeTopic, start: Callable[..., Job], read: Callable[..., Reading]
) -> None:
    import asyncio

    topic = make_topic()

    class Task(SourceTask):
        async def start(self) -> None:  # type: ignore[override]
            self.queue: asyncio.Queue[str] = asyncio.Queue()
            self.feeder = asyncio.create_task(self.feed())

        async def feed(self) -> None:
            for number in range(3):
                await self.queue.put(str(number))

        async def poll(self) -> Any:  # type: ignore[override]
            try:
                async with asyncio.timeout(0.05):
                    return [SourceRecord({}, {}, topic, await self.queue.get())]
            except TimeoutError:
                return None

    start({}, connector_of(Task))
    assert read(topic).values(3) == ["0", "1", "2"]


def test_a_source_is_told_what_is_written(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any
) -> None:
    topic = make_topic()
    told: list[str] = []
    commits: list[int] = []

    class Task(SourceTask):
        records: Any = (SourceRecord({}, {}, topic, "a"), SourceRecord({}, {}, topic, "b"))

        def poll(self) -> Any:
            found, self.records = self.records, ()
            return found

        def committed(self, record: SourceRecord) -> None:
            told.append(record.value)

        def commit(self) -> None:
            commits.append(len(told))

    for exactly_once in ("disabled", "enabled"):
        told.clear()
        start({}, connector_of(Task), settings=worker(exactly_once_source_support=exactly_once))
        until(lambda: told == ["a", "b"] and 2 in commits)


def test_records_and_offsets_of_a_poll_are_one_transaction(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, settings = make_topic(), worker(exactly_once_source_support="enabled")
    polls: list[int] = []

    def poll(task: SourceTask) -> Any:
        begin = (task.context.offset({"p": 1}) or {"n": 0})["n"]
        polls.append(begin)
        if len(polls) == 2:
            # The first of them is written, the second cannot be, and none of them counts.
            return [
                SourceRecord({"p": 1}, {"n": begin + 1}, topic, f"v{begin}"),
                SourceRecord({}, {}, topic, {1, 2}, headers=()),
            ]
        if begin >= 4:
            task.context.wait(0.05)
            return None
        return [SourceRecord({"p": 1}, {"n": n + 1}, topic, f"v{n}") for n in (begin, begin + 1)]

    config = {"value.converter": "StrictStrings"}
    job = start(config, source_of(poll), name="eos", settings=settings)
    assert read(topic).values(4) == ["v0", "v1", "v2", "v3"]
    # What was taken back may have reached the topic, or not.
    assert len(read(topic, "read_uncommitted").all()) in (4, 5)
    assert kept_offsets(settings, "eos") == {'{"p":1}': {"n": 4}}
    assert job.states()[:4] == ["RUNNING", "FAILED", "RESTARTING", "RUNNING"]


def test_a_source_may_say_where_its_transactions_end(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, settings = make_topic(), worker(exactly_once_source_support="enabled")
    numbers: list[int] = []
    go = threading.Event()

    def poll(task: SourceTask) -> Any:
        if len(numbers) == 3 and not go.is_set():
            task.context.wait(0.02)
            return None
        numbers.append(len(numbers))
        if len(numbers) > 5:
            task.context.wait(0.05)
            return None
        if len(numbers) in (2, 4):
            task.context.commit_transaction()
        return [SourceRecord({"p": 1}, {"n": len(numbers)}, topic, str(len(numbers)))]

    config = {"transaction.boundary": "connector", "offsets.storage.topic": f"{topic}-offsets"}
    job = start(config, source_of(poll), name="own", settings=settings)
    reading = read(topic)
    assert reading.values(2) == ["1", "2"]
    go.set()
    assert reading.values(4) == ["1", "2", "3", "4"]
    until(lambda: len(numbers) > 5)
    job.stop()
    assert len(reading.all()) == 4  # the fifth was not said to be the end of one
    assert kept_offsets(settings, "own", f"{topic}-offsets") == {'{"p":1}': {"n": 4}}
    assert kept_offsets(settings, "own") == {}


def test_transactions_may_end_at_intervals(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, settings = make_topic(), worker(exactly_once_source_support="enabled")
    config = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "300", "topic": topic,
              "count": "200", "batch": "10"}  # fmt: skip
    job = start(config, "CountingSource", name="interval", settings=settings)
    assert read(topic).values(200) == [f"0:{number}" for number in range(200)]
    assert job.status()["counters"]["offset-commit-success"] < 20


def test_a_standalone_worker_keeps_offsets_in_a_file(
    make_topic: MakeTopic,
    start: Callable[..., Job],
    worker: Any,
    read: Callable[..., Reading],
    tmp_path: Path,
) -> None:
    topic, file = make_topic(), tmp_path / "offsets"
    given = worker().properties | {"offset.storage.file.filename": str(file)}
    settings = WorkerSettings.of(
        {name: value for name, value in given.items() if name != "offset.storage.topic"}
    )
    config = {"topic": topic, "count": "50", "batch": "7"}
    start(config, "CountingSource", name="alone", tasks=2, settings=settings)
    assert sorted(read(topic).values(100)) == sorted(
        f"{task}:{number}" for task in (0, 1) for number in range(50)
    )

    def kept() -> list[Any]:
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    until(lambda: [each["value"] for each in kept()] == [{"next": 50}] * 2)
    assert sorted(each["key"][1]["task"] for each in kept()) == [0, 1]


@pytest.mark.parametrize("support", ["enabled", "disabled"])
def test_a_killed_source_loses_nothing_and_repeats_nothing_where_that_is_promised(
    support: str, make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic = make_topic(partitions=2)
    settings = worker(exactly_once_source_support=support)
    launcher = ProcessLauncher()
    count = 1500
    job = start({"topic": topic, "count": str(count), "batch": "5"}, "CountingSource", tasks=2, launcher=launcher,
                settings=settings)  # fmt: skip
    reading = read(topic)
    for kill in range(3):
        reading.values((kill + 1) * 300)
        kill_one(job, launcher, kill % 2)
    expected = {f"{task}:{number}" for task in (0, 1) for number in range(count)}
    until(lambda: set(reading.values()) >= expected)
    until(
        lambda: sorted(each["next"] for each in kept_offsets(settings, job.long.name).values()) == [count] * 2
    )
    counted = Counter(reading.values())
    assert counted.keys() == expected
    if support == "enabled":
        assert set(counted.values()) == {1}


def test_what_a_source_refuses_itself_is_kept_with_its_offset(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    for support in ("disabled", "enabled"):
        topic, letters = make_topic(), make_topic()
        settings = worker(exactly_once_source_support=support)
        reported: list[int] = []

        def poll(task: SourceTask, reported: list[int] = reported, topic: str = topic) -> None:
            if not reported:
                reported.append(1)
                task.context.report(
                    SourceRecord({"p": 1}, {"n": 1}, topic, "half a line"), DataError("cut off")
                )
            task.context.wait(0.05)

        config = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters}
        start(config, source_of(poll), name=f"report-{support}", settings=settings)
        assert read(letters).values(1) == ["half a line"]
        until(partial(is_kept, settings, f"report-{support}", {'{"p":1}': {"n": 1}}))
