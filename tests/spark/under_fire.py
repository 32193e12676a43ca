"""What the tests do to running queries: feed them without a pause, and kill what they consist of."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from penstock.testing.processes import RunningProcess, start_process

DEADLINE_S = 300
KEYS = 7
ROWS_PER_SECOND = 150
LEAD_MAX_ROWS = 1_000  # so that a slow machine has as much to do as a fast one


class Feeder(threading.Thread):
    """Writes rows `<number>` with one of a few keys, steadily, until it is stopped; a broker that restarts delays it.

    It waits for whoever copies the rows when it is far ahead.
    """

    def __init__(self, bootstrap: str, topic: str, outputs: Sequence[Output]) -> None:
        super().__init__(name="feeder", daemon=True)
        self._topic = topic
        self._outputs = outputs
        self._ends = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 1000 * DEADLINE_S,
                "metadata.recovery.strategy": "none",  # librdkafka 2.16 loses requests when it begins anew
                "log_level": 0,
            }
        )
        self.rows: list[tuple[str, str]] = []
        self._refused: list[str] = []

    def run(self) -> None:
        copied = 0
        while not self._ends.wait(1 / ROWS_PER_SECOND):
            if len(self.rows) - copied > LEAD_MAX_ROWS:
                copied = min(output.end_offset() for output in self._outputs)
                continue
            row = (f"key-{len(self.rows) % KEYS}", f"{len(self.rows):06}")
            self._producer.produce(self._topic, key=row[0], value=row[1], on_delivery=self._delivered)
            self._producer.poll(0)
            self.rows.append(row)

    def finish(self) -> list[tuple[str, str]]:
        """Everything that was written; all of it is in the topic."""
        self.stop()
        assert self._producer.flush(DEADLINE_S) == 0
        assert not self._refused, self._refused[:3]
        return self.rows

    def stop(self) -> None:
        self._ends.set()
        self.join(DEADLINE_S)

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._refused.append(str(error))


def start_driver(bootstrap: str, topics: Sequence[str], directory: Path) -> RunningProcess:
    program = Path(__file__).parent / "copy_program.py"
    command: list[str | Path] = [sys.executable, program, bootstrap, *topics, directory]
    return start_process(command, name="driver", log_path=directory / "driver.log")


def kill_driver(driver: RunningProcess, *, with_its_jvm: bool) -> None:
    """Without it the JVM and its workers live on for a moment, and write on: the next driver has to shut them out."""
    if with_its_jvm:
        os.killpg(driver.pid, signal.SIGKILL)
    driver.kill()


def kill_worker(driver: RunningProcess, choose: Callable[[list[int]], int]) -> None:
    """One Python worker of a driver; Spark gives its task to another."""
    until(lambda: bool(task_workers(driver.pid)), "a worker", driver)
    workers = task_workers(driver.pid)
    if workers:
        worker = choose(workers)
        os.kill(worker, signal.SIGKILL)
        until(lambda: worker not in task_workers(driver.pid), "the end of a worker", driver)


def task_workers(session_id: int) -> list[int]:
    """The forks of the daemon that has tasks, in the session that `start_process` gave to the driver.

    Other daemons have what plans a stream on the driver; Spark ends a query that loses that one.
    """
    daemons: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
            command = path.with_name("cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        state, parent, _, session = stat[stat.rindex(")") + 2 :].split()[:4]
        if int(session) == session_id and state != "Z" and is_task_daemon(command):
            daemons[int(path.parent.name)] = int(parent)
    return sorted(pid for pid, parent in daemons.items() if parent in daemons)


def is_task_daemon(command: bytes) -> bool:
    words = command.rstrip(b"\0").split(b"\0")
    return b"penstock.spark.internals.daemon" in words and words[-1] == b"pyspark.worker"


def until(reached: Callable[[], bool], what: str, driver: RunningProcess) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not reached():
        if not driver.is_running:
            raise driver.failure(f"ended with {driver.exit_code} before {what}")
        if time.monotonic() > deadline_s:
            raise driver.failure(f"no {what} in {DEADLINE_S} s")
        time.sleep(0.01)


class Output:
    """A topic of one partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._place = TopicPartition(topic, 0, 0)
        self._watcher = self._consumer("read_uncommitted")
        self._asking = threading.Lock()

    def answers(self) -> bool:
        return self.end_offset() >= 0

    def end_offset(self) -> int:
        """-1 while the broker does not answer."""
        with self._asking:
            try:
                return int(self._watcher.get_watermark_offsets(self._place, timeout=2)[1])
            except KafkaException:
                # A client that only asks, and is no reader of the topic, goes on asking a leader that is gone.
                self._watcher.close()
                self._watcher = self._consumer("read_uncommitted")
                return -1

    def committed(self) -> list[tuple[str, str]]:
        """Keys and values as a `read_committed` reader gets them."""
        consumer = self._consumer("read_committed")
        consumer.assign([self._place])
        rows: list[tuple[str, str]] = []
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, "an open transaction hides the end"
            if message.error():
                break
            rows.append(((message.key() or b"").decode(), (message.value() or b"").decode()))
        consumer.close()
        return rows

    def close(self) -> None:
        self._watcher.close()

    def _consumer(self, isolation_level: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reads",
                "isolation.level": isolation_level,
                "enable.partition.eof": True,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )


def by_key(rows: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for key, value in rows:
        found[key].append(value)
    return found
