"""penstock.consumer as processes that are killed, frozen and asked to stop, under load."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess, start_process
from tests.clients.processors import SESSION, committed_of_all, read_all, values, wait_until, write
from tests.conftest import MakeTopic

PROGRAM = Path(__file__).with_name("processor_program.py")
RECORDS = 6000
RECORDS_PER_S = 1000
PARTITIONS = 4
Start = Callable[..., RunningProcess]


@pytest.fixture
def start(tmp_path: Path, broker: PenstockBroker) -> Iterator[Start]:
    """Starts processors; a second one of the same instance name writes on in the same log."""
    started: list[RunningProcess] = []

    def start_one(
        source: str,
        target: str,
        *,
        instance: str,
        guarantee: str = "exactly-once",
        outputs: int = 1,
        settings: dict[str, Any] | None = None,
    ) -> RunningProcess:
        command = [
            sys.executable, str(PROGRAM), broker.bootstrap, source, target, "--instance", instance,
            "--guarantee", guarantee, "--outputs", str(outputs),
            "--consumer-settings", json.dumps({**SESSION, **(settings or {})}),
        ]  # fmt: skip
        log_path = tmp_path / f"{instance}.log"
        started.append(start_process(command, name=f"processor {instance}", log_path=log_path))
        started[-1].wait_for_line(f"{instance} of group .* begins")
        return started[-1]

    yield start_one
    for process in started:
        if process.is_running:
            process.kill()


@contextmanager
def load(bootstrap: str, topic: str) -> Iterator[threading.Thread]:
    """Writes RECORDS numbered values, spread over the partitions, at a steady pace."""

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
        began_s = time.monotonic()
        for number in range(RECORDS):
            producer.produce(topic, b"%d" % number, key=b"%d" % number)
            if number % 50 == 0:
                producer.flush(60)
                while number / RECORDS_PER_S > time.monotonic() - began_s:
                    producer.poll(0.01)
        producer.flush(60)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(60)


def check_exactly_once(
    bootstrap: str, source: str, target: str, *, records: int = RECORDS, outputs: int = 1
) -> None:
    copied = Counter(int(value or b"") for value in values(read_all(bootstrap, target)))
    assert copied == {number: outputs for number in range(records) if number % 10 != 7}
    dead = Counter(int(value or b"") for value in values(read_all(bootstrap, f"{source}.dlq")))
    assert dead == {number: 1 for number in range(records) if number % 10 == 7}


def committed_count(bootstrap: str, source: str) -> int:
    group = f"group-of-{source}"
    offsets = committed_of_all(
        bootstrap, group, source, range(PARTITIONS), isolation="read_uncommitted"
    )  # however busy the processors are
    return sum(max(0, offset) for offset in offsets)


def test_processors_killed_under_load_leave_every_output_exactly_once(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    # Many outputs for each record: most of a processor's time goes into its transactions, and so do most of the kills.
    records, outputs = 20_000, 10
    source, target = make_topic(partitions=PARTITIONS), make_topic(partitions=2)
    chance = random.Random(os.getpid())

    def start_one(name: str) -> RunningProcess:
        # The group knows a killed member again by this id when it comes back, and does not wait for its session to end.
        settings = {"group.instance.id": name}
        return start(source, target, instance=name, outputs=outputs, settings=settings)

    write(broker.bootstrap, source, [(b"%d" % number, b"%d" % number) for number in range(records)])
    members = {name: start_one(name) for name in ("a", "b")}
    done = kills = 0
    while done < records:
        wait_until(
            lambda before=done: committed_count(broker.bootstrap, source) > before,
            f"progress after {done} records and {kills} kills",
            details=lambda: "\n\n".join(process.log_text() for process in members.values()),
        )
        done = committed_count(broker.bootstrap, source)
        name = chance.choice(["a", "b"])
        members[name].kill()
        members[name] = start_one(name)
        kills += 1
    for process in members.values():
        assert process.stop() == 0, process.log_text()
    assert kills > 3
    check_exactly_once(broker.bootstrap, source, target, records=records, outputs=outputs)


def test_a_frozen_processor_that_wakes_up_after_others_took_over_writes_nothing_twice(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, target = make_topic(partitions=PARTITIONS), make_topic(partitions=2)
    frozen, other = (start(source, target, instance=name) for name in ("a", "b"))
    with load(broker.bootstrap, source):
        wait_until(lambda: committed_count(broker.bootstrap, source) > RECORDS // 20, "both are at work")
        os.kill(frozen.pid, signal.SIGSTOP)
    wait_until(lambda: committed_count(broker.bootstrap, source) == RECORDS, "the other one does it all")
    os.kill(frozen.pid, signal.SIGCONT)
    assert other.stop() == 0
    # What the frozen one held in its hands was done by the other. It goes on as a new member, or says that it was shut out.
    frozen.stop()
    check_exactly_once(broker.bootstrap, source, target)


@pytest.mark.parametrize("guarantee", ["at-least-once", "at-most-once", "exactly-once"])
def test_sigterm_ends_a_processor_cleanly_and_another_goes_on(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, guarantee: str
) -> None:
    source, target = make_topic(partitions=PARTITIONS), make_topic(partitions=2)
    with load(broker.bootstrap, source) as writer:
        rounds = 0
        while writer.is_alive() or rounds < 2:
            process = start(source, target, instance="a", guarantee=guarantee)
            done = committed_count(broker.bootstrap, source)
            wait_until(
                lambda before=done: (
                    committed_count(broker.bootstrap, source) > before or not writer.is_alive()
                ),
                "it is at work",
            )
            assert process.stop() == 0, process.log_text()
            assert "ended cleanly" in process.log_text()
            rounds += 1
    is_done = False
    while not is_done:
        process = start(source, target, instance="a", guarantee=guarantee)
        wait_until(lambda: committed_count(broker.bootstrap, source) == RECORDS, "everything is committed")
        assert process.stop() == 0
        # At most once, what is committed may be still to do: who is stopped gives that back.
        is_done = committed_count(broker.bootstrap, source) == RECORDS
    assert rounds > 1
    check_exactly_once(broker.bootstrap, source, target)
