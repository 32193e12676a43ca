"""What tests of tasks share; `conftest` gives it to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from penstock.connect.tasks import TaskProgram, WorkerSettings
from penstock.spark.tasks import ThreadLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.connect.counting_connectors import load
from tests.connect.task_jobs import (
    NAMES,
    STRINGS,
    Job,
    Reading,
)


@pytest.fixture
def read(broker: PenstockBroker) -> Iterator[Callable[..., Reading]]:
    made: list[Reading] = []

    def begin(topic: str, isolation: str = "read_committed") -> Reading:
        made.append(Reading(broker.bootstrap, topic, isolation))
        return made[-1]

    yield begin
    for each in made:
        each.close()


@pytest.fixture
def worker(broker: PenstockBroker, topic_name: str) -> Callable[..., WorkerSettings]:
    offsets = f"{topic_name}-offsets"
    create_topic(broker.bootstrap, offsets, partitions=3, configs={"cleanup.policy": "compact"})

    def make(**options: str) -> WorkerSettings:
        given = {name.replace("_", "."): value for name, value in options.items()}
        return WorkerSettings.of(
            {
                "bootstrap.servers": broker.bootstrap, "group.id": f"connect-{topic_name}",
                "offset.storage.topic": offsets, "offset.storage.replication.factor": "1",
                "offset.flush.interval.ms": "200", "key.converter": STRINGS, "value.converter": STRINGS,
                "errors.restart.delay.initial.ms": "50", "errors.restart.delay.max.ms": "200", **given,
            }
        )  # fmt: skip

    return make


@pytest.fixture
def start(worker: Callable[..., WorkerSettings]) -> Iterator[Callable[..., Job]]:
    """`start({…}, Kind, tasks=2)`: `Kind` is the connector's class, or its name in `counting_connectors`."""
    jobs: list[Job] = []

    def begin(
        config: Mapping[str, str],
        kind: Any,
        *,
        name: str | None = None,
        tasks: int = 1,
        launcher: Any = None,
        settings: WorkerSettings | None = None,
    ) -> Job:
        whole = {"connector.class": str(kind), **config}
        loading = (
            load
            if isinstance(kind, str)
            else lambda asked, *kinds: kind if asked == str(kind) else load(asked, *kinds)
        )
        program = TaskProgram(name or next(NAMES), whole, [{}] * tasks, settings or worker(), loading)
        jobs.append(Job(program, tasks, launcher or ThreadLauncher()))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.stop()
