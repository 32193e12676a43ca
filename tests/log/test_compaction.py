"""Compaction as a user sees it: a broker process and the console tools."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import run_command
from tests.conftest import StartBroker

DEADLINE_S = 90  # a first compaction may have to compile its walks
COMPACTED = ("cleanup.policy=compact", "min.cleanable.dirty.ratio=0.001")


@pytest.fixture
def broker(start_broker: StartBroker) -> PenstockBroker:
    return start_broker(options={"log.cleaner.backoff.ms": "50", "offsets.topic.num.partitions": "1"})


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.05)


def kafka(broker: PenstockBroker, tool: str, *words: str, stdin: str = "") -> str:
    done = run_command(f"kafka-{tool}", "--bootstrap-server", broker.bootstrap, *words, stdin=stdin)
    assert done.code == 0, done.err
    return done.out


def create(broker: PenstockBroker, topic: str, *configs: str) -> None:
    options = [word for config in configs for word in ("--config", config)]
    kafka(broker, "topics", "--create", "--topic", topic, "--partitions", "1", *options)


def produce(broker: PenstockBroker, topic: str, *lines: str) -> None:
    properties = [
        f"--reader-property={pair}" for pair in ("parse.key=true", "key.separator=,", "null.marker=NULL")
    ]
    kafka(
        broker,
        "console-producer",
        "--topic",
        topic,
        *properties,
        stdin="".join(f"{line}\n" for line in lines),
    )


def consume(broker: PenstockBroker, topic: str, count: int, *shown: str) -> list[str]:
    properties = [f"--formatter-property=print.{name}=true" for name in ("key", *shown)]
    words = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "15000")
    return kafka(broker, "console-consumer", "--topic", topic, *words, *properties).splitlines()


def compactions(broker: PenstockBroker, topic: str) -> list[str]:
    return re.findall(rf"compacted {topic}-0 up to offset \d+", broker.log_path.read_text())


def segments(broker: PenstockBroker, topic: str) -> list[Path]:
    return sorted((broker.data_dir / f"{topic}-0").glob("*.log"))


def test_of_the_salaries_of_each_employee_only_the_last_remains(broker: PenstockBroker) -> None:
    topic = "employee-salary"
    create(broker, topic, *COMPACTED, "segment.ms=5000")
    produce(
        broker, topic,
        "Patrick,salary: 10000", "Lucy,salary: 20000", "Bob,salary: 20000",
        "Patrick,salary: 25000", "Lucy,salary: 30000", "Patrick,salary: 30000",
    )  # fmt: skip
    first_segment = segments(broker, topic)[0]
    # As in Kafka a record that comes after segment.ms is what closes a segment.
    wait_for(lambda: time.time() > first_segment.stat().st_mtime + 5.2, "segment.ms")
    produce(broker, topic, "Stephane,salary: 0")
    wait_for(lambda: compactions(broker, topic), "a compaction")
    assert consume(broker, topic, 4, "offset") == [
        "Offset:2\tBob\tsalary: 20000",
        "Offset:4\tLucy\tsalary: 30000",
        "Offset:5\tPatrick\tsalary: 30000",
        "Offset:6\tStephane\tsalary: 0",
    ]


def test_a_compacted_log_is_the_same_after_a_kill_and_takes_up_where_it_was(
    broker: PenstockBroker, start_broker: StartBroker
) -> None:
    topic = "kept"
    create(broker, topic, *COMPACTED, "segment.ms=200")
    for value in range(3):
        produce(broker, topic, f"a,{value}", f"b,{value}")
        wait_for(lambda: time.time() > segments(broker, topic)[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, topic, "c,0")
    wait_for(lambda: "up to offset 6" in str(compactions(broker, topic)[-1:]), "a compaction of all six")
    expected = ["a\t2", "b\t2", "c\t0"]
    assert consume(broker, topic, 3) == expected
    checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
    wait_for(checkpoint.exists, "the checkpoint")
    assert f"{topic} 0 6\n" in checkpoint.read_text()
    runs = len(compactions(broker, topic))
    broker.kill()
    again = start_broker(options={"log.cleaner.backoff.ms": "50"})
    assert consume(again, topic, 3) == expected
    assert len(compactions(again, topic)) == runs


def test_a_tombstone_is_seen_until_delete_retention_ms_and_then_gone(broker: PenstockBroker) -> None:
    topic = "with-tombstones"
    create(broker, topic, *COMPACTED, "segment.ms=200", "delete.retention.ms=1000")
    produce(broker, topic, "a,1", "b,1", "a,NULL")
    offset = 3

    def next_compaction() -> None:
        """A new closed segment makes the log dirty again."""
        nonlocal offset
        wait_for(lambda: time.time() > segments(broker, topic)[-1].stat().st_mtime + 0.3, "segment.ms")
        produce(broker, topic, f"x,{offset}")
        wait_for(lambda: f"up to offset {offset}" in str(compactions(broker, topic)[-1:]), "a compaction")
        offset += 1

    next_compaction()
    first_compaction = time.time()
    assert consume(broker, topic, 3) == ["b\t1", "a\tnull", "x\t3"]
    wait_for(lambda: time.time() > first_compaction + 1.1, "delete.retention.ms")
    next_compaction()
    assert consume(broker, topic, 2, "offset")[0] == "Offset:1\tb\t1"
    assert not any(line.startswith("a\t") for line in consume(broker, topic, 2))


def test_a_corrupt_log_is_left_alone_and_said_so_once(
    broker: PenstockBroker, start_broker: StartBroker
) -> None:
    topic = "damaged"
    create(broker, topic, *COMPACTED, "segment.ms=200", "min.compaction.lag.ms=3600000")
    produce(broker, topic, "a,1", "a,2")
    wait_for(lambda: time.time() > segments(broker, topic)[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, topic, "a,3")
    path = segments(broker, topic)[0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    words = ("--alter", "--entity-type", "topics", "--entity-name", topic)
    kafka(broker, "configs", *words, "--add-config", "min.compaction.lag.ms=0")
    wait_for(
        lambda: f"{topic}-0 is not compacted until the broker is restarted" in broker.log_path.read_text(),
        "the line",
    )
    create(broker, "sound", *COMPACTED, "segment.ms=200")
    produce(broker, "sound", "a,1")
    wait_for(lambda: time.time() > segments(broker, "sound")[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, "sound", "a,2")
    wait_for(lambda: compactions(broker, "sound"), "the compaction of another log")
    assert broker.log_path.read_text().count("is not compacted until the broker is restarted") == 1
    assert path.read_bytes() == data


def test_a_deleted_topic_ends_its_compaction_quietly(start_broker: StartBroker) -> None:
    broker = start_broker(
        options={"log.cleaner.backoff.ms": "50", "log.cleaner.io.max.bytes.per.second": "100"}
    )
    create(broker, "doomed", *COMPACTED, "segment.ms=200")
    produce(broker, "doomed", *(f"k{number % 3},{'x' * 300}" for number in range(20)))
    wait_for(lambda: time.time() > segments(broker, "doomed")[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, "doomed", "a,2")
    wait_for(lambda: _workers_of(broker.pid), "a worker")
    kafka(broker, "topics", "--delete", "--topic", "doomed")
    wait_for(lambda: not _workers_of(broker.pid), "the end of the worker")
    lines = broker.log_path.read_text().splitlines()
    text = "\n".join(line for line in lines if "docs/security.md" not in line)  # it listens to a network
    assert "WARNING" not in text
    assert "ERROR" not in text


def test_a_stopped_broker_leaves_no_worker_behind(start_broker: StartBroker) -> None:
    broker = start_broker(
        options={"log.cleaner.backoff.ms": "50", "log.cleaner.io.max.bytes.per.second": "100"}
    )
    create(broker, "busy", *COMPACTED, "segment.ms=200")
    produce(broker, "busy", *(f"k{number % 3},{'x' * 300}" for number in range(20)))
    wait_for(lambda: time.time() > segments(broker, "busy")[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, "busy", "a,2")
    wait_for(lambda: _workers_of(broker.pid), "a worker")
    workers = _workers_of(broker.pid)
    broker.stop()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "the end of the worker")
    assert not list(broker.data_dir.glob("busy-0/*.cleaned"))


def test_the_worker_of_a_killed_broker_ends_by_itself(start_broker: StartBroker) -> None:
    broker = start_broker(
        options={"log.cleaner.backoff.ms": "50", "log.cleaner.io.max.bytes.per.second": "100"}
    )
    create(broker, "busy", *COMPACTED, "segment.ms=200")
    produce(broker, "busy", *(f"k{number % 3},{'x' * 300}" for number in range(20)))
    wait_for(lambda: time.time() > segments(broker, "busy")[-1].stat().st_mtime + 0.3, "segment.ms")
    produce(broker, "busy", "a,2")
    wait_for(lambda: _workers_of(broker.pid), "a worker")
    workers = _workers_of(broker.pid)
    broker.kill()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "the end of the worker")


def _workers_of(parent: int) -> list[int]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(directory.name))
    return found
