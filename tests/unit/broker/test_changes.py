"""How metadata changes: what is not known to be written is read again."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.broker.metadata.changes import Changes, Cluster
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import TOPICS, Change, ClusterImage, ConfigsChanged
from penstock.metadata.load import Controllership
from penstock.metadata.tree import BadVersion, Check, Set, TreeOp
from penstock.model.errors import ApiError, ErrorCode

WRITE = Set(znodes.BROKER_EPOCHS, b"{}")


class SlowTree:
    def __init__(self) -> None:
        self.written: list[Sequence[TreeOp]] = []
        self.is_slow = True
        self.answer: asyncio.Future[list[Any]] | None = None

    async def multi(self, ops: Sequence[TreeOp]) -> list[Any]:
        self.written.append(ops)
        if self.is_slow:
            self.answer = asyncio.get_running_loop().create_future()
            return await self.answer
        return []


class FakeCluster(Cluster):
    def __init__(self) -> None:
        self.reloads = 0
        self.doubts = 0
        self.replacements = 0

    async def reload(self) -> None:
        self.reloads += 1

    def unsure(self) -> None:
        self.doubts += 1

    def replaced(self) -> None:
        self.replacements += 1

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
        decision: Decision[None] = Decision([], [WRITE], [])
        task = asyncio.create_task(changes.make(lambda: decision))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cluster.doubts == 1  # so that somebody looks, also if no other change comes
        tree.is_slow = False
        await changes.make(lambda: Decision([], [WRITE], []))
        assert cluster.reloads == 1
        fence = Check(znodes.CONTROLLER_EPOCH, 2)
        assert tree.written == [[fence, WRITE], [fence], [fence, WRITE]]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_elected_again", [False, True])
@pytest.mark.parametrize("is_refused", [False, True])
def test_what_is_written_when_the_controller_resigns_is_not_applied_to_its_successors_image(
    is_refused: bool, is_elected_again: bool
) -> None:
    async def scenario() -> None:
        tree: Any = SlowTree()
        cluster = FakeCluster()
        image = ClusterImage()
        changes = Changes(image, tree, nothing, lambda change: None)
        changes.control(cluster, Controllership(epoch=3, epoch_version=2))
        decision: Decision[None] = Decision([], [WRITE], [ConfigsChanged(TOPICS, "orders", {})])
        task = asyncio.create_task(changes.make(lambda: decision))
        await asyncio.sleep(0)
        changes.resign()
        if is_elected_again:
            changes.control(cluster, Controllership(epoch=5, epoch_version=4))
        if is_refused:
            tree.answer.set_exception(BadVersion(znodes.CONTROLLER_EPOCH))
        else:
            tree.answer.set_result([])
        with pytest.raises(ApiError) as refused:
            await task
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert not image.has_config_node(TOPICS, "orders")
        assert cluster.replacements == 0
        assert changes.is_allowed is is_elected_again

    asyncio.run(scenario())
