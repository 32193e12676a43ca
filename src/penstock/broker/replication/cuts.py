"""Truncations of logs by threads: a follower removes what its leader does not have, while other partitions are served.

One truncation at a time for each partition. It always runs to its end, because a truncation that stopped half way could be
undone by a crash. Until then the partition gets no other role, and its log is not flushed, moved or compacted.
"""

from asyncio import CancelledError, Task, shield, sleep, wait
from contextlib import closing
from errno import EIO
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.broker.upkeep.log_directories import is_of_the_disk

if TYPE_CHECKING:
    from penstock.broker.facets import WithDiskFaults, WithLoop, WithPartitions, WithPools
    from penstock.broker.partitions.partition import Partition
    from penstock.storage.chores import Chores

    class Needs(WithDiskFaults, WithLoop, WithPartitions, WithPools, Protocol): ...


SWAP_POLL_SECONDS: Final = 0.02


class Cuts:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._running: dict[Partition, Task[None]] = {}

    async def run(self, partition: "Partition", chores: "Chores") -> None:
        """OSError when the disk fails. Who is cancelled while it waits does not stop it."""
        task = self._running[partition] = self._node.loop.create_task(self._work(partition, chores))
        task.add_done_callback(lambda _: self._running.pop(partition))
        try:
            await shield(task)
        except CancelledError:
            task.add_done_callback(lambda _: self._report(partition, task))
            raise

    def _report(self, partition: "Partition", task: Task[None]) -> None:
        """A fault of a cut that nobody waits for any more."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, OSError):
            self._node.report_disk_fault(
                f"cannot cut the log of {partition.topic}-{partition.index}", error, partition
            )

    async def settled(self, topic_id: bytes, index: int) -> None:
        """Until none is under way in that partition."""
        if self._running:
            held = self._node.partitions.topic(topic_id)
            if held is not None:
                running = self._running.items()
                await _all_done(
                    [task for cut, task in running if (cut.topic, cut.index) == (held.name, index)]
                )

    async def drain(self) -> None:
        await _all_done(list(self._running.values()))

    async def _work(self, partition: "Partition", chores: Any) -> None:
        # A compacted segment on its way in has files whose names are about to change.
        while partition.log.swap is not None and not partition.is_gone:
            await sleep(SWAP_POLL_SECONDS)
        log = partition.log
        end_offset = log.end_offset
        try:
            with closing(chores):
                for chore in chores:
                    await self._node.pools.syncs.run(chore)
        except OSError as error:
            if log.end_offset == end_offset or is_of_the_disk(error):
                raise
            # Records are gone that it still knows of its producers: it would take them for repeated. Only an open sets it right.
            raise OSError(EIO, f"{error.strerror}, while the log was truncated") from error


async def _all_done(tasks: list[Task[None]]) -> None:
    if tasks:
        await wait(tasks)
