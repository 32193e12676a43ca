"""A cluster of three brokers of ours, for all tests of a file that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing.penstock_cluster import PenstockCluster

OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "log.initial.task.delay.ms": "86400000",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockCluster]:
    with PenstockCluster(
        tmp_path_factory.mktemp("cluster"), options=OPTIONS, session_timeout_ms=3_000
    ) as running:
        yield running
        for broker_id in running.broker_ids:
            assert "Traceback" not in running.log_text(broker_id), (
                f"broker {broker_id} logged a bug of its own"
            )
