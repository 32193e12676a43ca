"""The store in ZooKeeper does what every store does."""

from collections.abc import Iterator

import pytest

from penstock.metadata.tree import MetadataTree
from penstock.stores.zookeeper import ZooKeeperOptions, open_store
from tests.unit.stores.test_every_store import *  # noqa: F403
from tests.unit.stores.test_every_store import Open, Run


@pytest.fixture
def open_tree(address: str, run: Run) -> Iterator[Open]:
    opened: list[MetadataTree] = []

    def open_it() -> MetadataTree:
        opened.append(run(open_store(ZooKeeperOptions(address))))
        return opened[-1]

    yield open_it
    for tree in opened:
        run(tree.close())
