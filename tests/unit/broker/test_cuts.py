"""Truncations that go on when nobody waits for them any more."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.replication.cuts import Cuts


class FailingPool:
    """Its work ends when `go_on` is set, with a fault of the disk."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def run(self, chore: Any) -> None:
        await self.go_on.wait()
        raise OSError(5, "Input/output error")


class FakePartition:
    topic = "orders"
    index = 3
    log = SimpleNamespace(swap=None)


def test_a_fault_of_the_disk_is_reported_although_the_waiter_was_cancelled() -> None:
    async def go() -> None:
        reported: list[tuple[OSError, Any]] = []
        pool = FailingPool()
        partition: Any = FakePartition()
        node: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            pools=SimpleNamespace(syncs=pool),
            report_disk_fault=lambda what, error, partition: reported.append((error, partition)),
        )
        cuts = Cuts(node)
        chores: Any = (chore for chore in [None])
        waiting = asyncio.ensure_future(cuts.run(partition, chores))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pool.go_on.set()
        await cuts.drain()
        await asyncio.sleep(0)
        ((error, where),) = reported
        assert error.errno == 5
        assert where is partition

    asyncio.run(go())
