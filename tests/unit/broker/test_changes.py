"""How metadata changes: what is not known to be written is read again."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.broker.changes import Changes, Cluster
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import Change, ClusterImage
from penstock.metadata.load import Controllership
from penstock.metadata.tree import Check, Set, TreeOp

WRITE = Set(znodes.BROKER_EPOCHS, b"{}")


class SlowTree:
    def __init__(self) -> None:
        self.written: list[Sequence[TreeOp]] = []
        self.is_slow = True

    async def multi(self, ops: Sequence[TreeOp]) -> list[Any]:
        self.written.append(ops)
        if self.is_slow:
            await asyncio.get_running_loop().create_future()
        return []


class FakeCluster(Cluster):
    def __init__(self) -> None:
        self.reloads = 0

    async def reload(self) -> None:
        self.reloads += 1

    def announce(self, change: Change) -> None:
        pass


async def nothing(change: Change) -> None:
    pass


def test_a_change_that_is_cancelled_while_it_is_written_has_the_image_read_again() -> None:
    """And not before a write has gone through, since a server of the store that lags behind would tell of the past."""

    async def scenario() -> None:
        tree: Any = SlowTree()
        cluster = FakeCluster()
        changes = Changes(ClusterImage(), tree, nothing, lambda change: None)
        changes.control(cluster, Controllership(epoch=3, epoch_version=2))
        task = asyncio.create_task(changes.make(lambda: Decision([], [WRITE], [])))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        tree.is_slow = False
        await changes.make(lambda: Decision([], [WRITE], []))
        assert cluster.reloads == 1
        fence = Check(znodes.CONTROLLER_EPOCH, 2)
        assert tree.written == [[fence, WRITE], [fence], [fence, WRITE]]

    asyncio.run(scenario())
