"""Mirrors as processes of their own, and what is in the clusters on both sides."""

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.testing.processes import RunningProcess, start_process

DEADLINE_S = 40.0
PENSTOCK = [sys.executable, "-m", "penstock"]
QUICK = {
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "transaction.boundary.interval.ms": "100",
    "offset.flush.interval.ms": "100",
    "offset.storage.partitions": "1",
    "errors.restart.delay.initial.ms": "200",
}
_numbers = itertools.count()


class Seen(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    timestamp: tuple[int, int]


def until(condition: Callable[[], Any], what: str, *, deadline_s: float = DEADLINE_S) -> Any:
    end_s = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < end_s, f"{what} did not come to be"
        time.sleep(0.05)
    return found


def properties(a: str, b: str, *, both_ways: bool = False, **more: str) -> dict[str, str]:
    """In `more` underscores stand for points."""
    given = {
        "clusters": "A, B",
        "A.bootstrap.servers": a,
        "B.bootstrap.servers": b,
        "A->B.enabled": "true",
        "B->A.enabled": str(both_ways).lower(),
        **QUICK,
    }
    return given | {name.replace("_", "."): value for name, value in more.items()}


class MirrorProcess:
    """`penstock mirror` with these properties."""

    def __init__(self, directory: Path, given: Mapping[str, str]) -> None:
        self.file = directory / f"mm2-{next(_numbers)}.properties"
        self.file.write_text("".join(f"{name} = {value}\n" for name, value in given.items()))
        self.log_path = self.file.with_suffix(".log")
        self.process: RunningProcess = self._start()

    def _start(self) -> RunningProcess:
        self._said_before = self.log_path.stat().st_size if self.log_path.exists() else 0
        command = [*PENSTOCK, "mirror", str(self.file), "--status", "1"]
        return start_process(command, name="penstock mirror", log_path=self.log_path)

    def kill(self) -> None:
        self.process.kill()

    def again(self) -> None:
        self.process = self._start()

    def stop(self) -> int:
        """The exit code of one that has begun: before that a signal ends it like any program."""
        until(
            lambda: "penstock mirror: running" in self.log_path.read_text()[self._said_before :],
            "its first line",
        )
        code = self.process.stop(timeout_s=20)
        assert "Traceback" not in self.log_path.read_text(), "the mirror logged a bug of its own"
        return code

    def __enter__(self) -> "MirrorProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop(timeout_s=20)


def write(
    bootstrap: str, topic: str, values: Iterable[int], *, partitions: int = 1, transactional: str = "", aborts: bool = False,
    **settings: Any,
) -> None:  # fmt: skip
    """A record for each number, with a key, a header and a time."""
    given = {"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0, **settings}
    if transactional:
        given["transactional.id"] = transactional
    producer = Producer(given)
    if transactional:
        producer.init_transactions(20)
        producer.begin_transaction()
    for number in values:
        producer.produce(
            topic, b"%d" % number, b"k%d" % number, number % partitions,
            headers=[("n", b"%d" % number)], timestamp=1_700_000_000_000 + number,
        )  # fmt: skip
    if aborts:
        producer.flush(20)
        producer.abort_transaction(20)
    elif transactional:
        producer.commit_transaction(20)
    assert producer.flush(20) == 0


def read(bootstrap: str, topic: str) -> dict[int, list[Seen]]:
    """All records by partition, as they are now."""
    found: dict[int, list[Seen]] = {}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": f"reader-{os.getpid()}", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 0,
            "fetch.wait.max.ms": 10,
        }
    )  # fmt: skip
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        left = set(partitions)
        end_s = time.monotonic() + DEADLINE_S
        while left:
            assert time.monotonic() < end_s, f"{topic} could not be read to its end"
            for message in consumer.consume(5000, 0.2):
                number = message.partition()
                assert number is not None
                if message.error() is not None:
                    left.discard(number)
                    continue
                found.setdefault(number, []).append(
                    Seen(message.key(), message.value(), message.headers(), message.timestamp())  # type: ignore[arg-type]
                )
    finally:
        consumer.close()
    return found


def count(bootstrap: str, topic: str) -> int:
    try:
        return sum(map(len, read(bootstrap, topic).values()))
    except KeyError:
        return 0


def numbers(found: Mapping[int, list[Seen]]) -> list[int]:
    return sorted(int(one.value or b"-1") for records in found.values() for one in records)


def read_as(bootstrap: str, group: str, topic: str, at_most: int) -> list[int]:
    """By a member of a group, which commits what it has read."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "log_level": 0, "session.timeout.ms": 6000,
        }
    )  # fmt: skip
    found: list[int] = []
    try:
        consumer.subscribe([topic])
        end_s = time.monotonic() + DEADLINE_S
        while len(found) < at_most:
            assert time.monotonic() < end_s, f"{group} has read {len(found)} of {at_most} records"
            for message in consumer.consume(min(100, at_most - len(found)), 0.2):
                if message.error() is None:
                    found.append(int(message.value() or b""))
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def read_from(bootstrap: str, topic: str, offset: int) -> int:
    """The first record at or behind an offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "one", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = until(lambda: consumer.poll(0.2), "a record")
        return int(message.value())
    finally:
        consumer.close()
