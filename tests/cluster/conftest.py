"""Clusters of three brokers on a ZooKeeper, all of them processes of their own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_cluster import PenstockCluster

SESSION_TIMEOUT_MS = 3_000
# Internal topics of few partitions: fifty would take most of the start of every test.
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.initial.task.delay.ms": "86400000",
}

StartCluster = Callable[..., PenstockCluster]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockCluster]:
    """One for all tests that leave it as they found it; give your topics names of their own (`topic_name`)."""
    with PenstockCluster(
        tmp_path_factory.mktemp("cluster"), options=OPTIONS, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as running:
        yield running
        check_logs(running)


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """A cluster of the test's own: `start_cluster(brokers=2, options={…})`; what PenstockCluster takes."""
    with ExitStack() as started:

        def start(**how: Any) -> PenstockCluster:
            how["options"] = {**OPTIONS, **how.get("options", {})}
            how.setdefault("session_timeout_ms", SESSION_TIMEOUT_MS)
            running = started.enter_context(PenstockCluster(tmp_path, **how))
            started.callback(check_logs, running)  # before it is stopped
            return running

        yield start


def check_logs(cluster: PenstockCluster) -> None:
    for broker_id in cluster.broker_ids:
        assert "Traceback" not in cluster.log_text(broker_id), f"broker {broker_id} logged a bug of its own"
