"""Servers, and the processes of tasks, are killed at random while records flow: nothing is lost, and where exactly once is
promised nothing comes twice."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.connect import counting_connectors
from tests.connect.processes import children_of, is_alive, kill
from tests.connect.workers import DEADLINE_S, Reading, Worker, closing, group_properties, until

SEED = 18
KILLS = 9
PAUSES_S = (0.6, 1.2)
TASKS_SHARE = 0.7
"""Of the kills are of tasks, half of all that there are; the others are of a server."""
TASKS, PARTITIONS = 2, 3
TABLE, LINES, END = "table.db", "lines.txt", "end"


class Servers:
    """Two, and whoever was killed is started again."""

    def __init__(self, directory: Path, properties: dict[str, str]) -> None:
        numbers = itertools.count(1)
        self._start: Callable[[], Worker] = lambda: Worker(
            directory, properties, name=f"server-{next(numbers)}"
        )
        self.running = [self._start(), self._start()]
        self._seen: set[int] = set()

    @property
    def any(self) -> Worker:
        return self.running[0]

    def kill_some(self, chance: random.Random) -> str:
        """A server, or tasks."""
        tasks = self._tasks()
        self._seen.update(tasks)
        if tasks and chance.random() < TASKS_SHARE:
            killed = [task for task in tasks if chance.random() < 0.5]
            for task in killed:
                kill(task, signal.SIGKILL)
            return f"{len(killed)} of {len(tasks)} tasks"
        server = self.running.pop(chance.randrange(len(self.running)))
        server.process.kill()
        self.running.append(self._start())
        return server.url

    def orphans(self) -> list[int]:
        """Tasks of servers that are gone."""
        return [each for each in self._seen.difference(self._tasks()) if is_alive(each)]

    def close(self) -> None:
        self._seen.update(self._tasks())
        for each in self.running:
            each.close()

    def _tasks(self) -> list[int]:
        return [task for each in self.running for task in children_of(each.process.pid)]


@pytest.mark.parametrize("support", ["enabled", "disabled"])
def test_what_is_killed_at_random_loses_nothing_and_repeats_nothing_where_that_is_promised(
    broker: PenstockBroker, tmp_path: Path, topic_name: str, support: str
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copy(counting_connectors.__file__, plugins)
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    servers = Servers(tmp_path, group_properties(broker.bootstrap) | {
        "exactly.once.source.support": support, "plugin.path": str(plugins), "errors.restart.delay.initial.ms": "100",
        "consumer.isolation.level": "read_committed",
    })  # fmt: skip
    reading = Reading(broker.bootstrap, topic_name)
    chance = random.Random(SEED)
    with closing(servers, reading):
        servers.any.create("source", {"connector.class": "CountingSource", "tasks.max": str(TASKS), "topic": topic_name,
                                      "count": "1000000", "batch": "5"})  # fmt: skip
        for name, file in (("Table", TABLE), ("Appending", LINES)):
            servers.any.create(name, {"connector.class": f"{name}Sink", "topics": topic_name, "tasks.max": str(TASKS),
                                      "file": str(tmp_path / file)})  # fmt: skip
        reading.wait(1)
        killed = []
        for _ in range(KILLS):
            killed.append(servers.kill_some(chance))
            time.sleep(chance.uniform(*PAUSES_S))
        servers.any.call("PUT", "/connectors/source/stop")
        servers.any.wait_for("source", "STOPPED")
        until(lambda: not servers.orphans(), "the end of tasks that nobody asks for")
        _write_ends(broker, topic_name)
        until(lambda: reading.look().count(END) == PARTITIONS, f"the end, after {killed}")
        lines, rows = partial(_lines, tmp_path / LINES), partial(_rows, tmp_path / TABLE)
        until(lambda: lines().count(END) >= PARTITIONS, f"the end of the lines, after {killed}")
        until(lambda: rows().count(END) >= PARTITIONS, f"the end of the rows, after {killed}")
        written = Counter(reading.values)
        assert set(lines()) == set(written), killed
        assert Counter(rows()) == written, killed
        del written[END]
        for task in range(TASKS):
            numbers = sorted(
                int(value.partition(":")[2]) for value in written if value.startswith(f"{task}:")
            )
            assert numbers == list(range(len(numbers))), f"numbers are missing after {killed}"
            assert numbers
        if support == "enabled":
            assert {value: count for value, count in written.items() if count > 1} == {}, killed
        for connector in ("Table", "Appending"):
            servers.any.wait_for(connector, "RUNNING", *["RUNNING"] * TASKS)
    until(lambda: not servers.orphans(), "the end of all tasks")


def _write_ends(broker: PenstockBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for partition in range(PARTITIONS):
        producer.produce(topic, END, partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def _rows(file: Path) -> list[str]:
    with sqlite3.connect(file, timeout=DEADLINE_S) as db:
        return [value for (value,) in db.execute("select value from records")]
