"""Fixtures for your tests, with pytest: installed with Penstock, without an import or a line of configuration.

    def test_it(penstock_broker, penstock_topic): ...

`penstock_broker` is a real broker for the whole run, `penstock_topic` a fresh topic on it, `penstock_cluster` three brokers on
a ZooKeeper. They start when the first test asks for them; a run that asks for none pays nothing, so nothing heavy is
imported here. docs/how-to/test-with-penstock.md is their page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing.penstock_broker import PenstockBroker
    from penstock.testing.penstock_cluster import PenstockCluster

# Groups form at once, and internal topics of one partition are there at once.
QUICK_OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def penstock_options() -> Mapping[str, str]:
    """Options of the brokers, in Kafka's names. Override it in your conftest.py to have others."""
    return QUICK_OPTIONS


@pytest.fixture(scope="session")
def penstock_broker(
    tmp_path_factory: pytest.TempPathFactory, penstock_options: Mapping[str, str]
) -> Iterator[PenstockBroker]:
    """A broker process on a free port, with an empty directory: connect to `penstock_broker.bootstrap`.

    One for all tests of a run; with pytest-xdist, one for each worker. Give groups and topics names of their own.
    """
    from penstock.testing.penstock_broker import PenstockBroker

    with PenstockBroker(tmp_path_factory.mktemp("penstock"), options=penstock_options) as broker:
        yield broker


@pytest.fixture
def penstock_make_topic(penstock_broker: PenstockBroker) -> MakeTopic:
    """Makes topics on the broker: `penstock_make_topic(partitions=3, config={"cleanup.policy": "compact"})` is the name."""
    from penstock.testing.clusters import create_topic

    def make(*, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        name = f"topic-{os.urandom(6).hex()}"
        create_topic(
            penstock_broker.bootstrap, name, partitions=partitions, replication_factor=1, config=config
        )
        return name

    return make


@pytest.fixture
def penstock_topic(penstock_make_topic: MakeTopic) -> str:
    """The name of a new topic with one partition."""
    return penstock_make_topic()


@pytest.fixture(scope="session")
def penstock_cluster(
    tmp_path_factory: pytest.TempPathFactory, penstock_options: Mapping[str, str]
) -> Iterator[PenstockCluster]:
    """Brokers 1, 2 and 3 on a ZooKeeper of their own, to be killed, paused and started again one by one.

    It needs `pip install 'penstock[spark]'`, which brings the ZooKeeper, and Java. A test that stops a broker starts it
    again: all tests of the run share the cluster.
    """
    from penstock.testing.penstock_cluster import PenstockCluster

    with PenstockCluster(tmp_path_factory.mktemp("penstock-cluster"), options=penstock_options) as cluster:
        yield cluster
