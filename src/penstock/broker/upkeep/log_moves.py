"""Moves of replicas between the log directories of this broker (AlterReplicaLogDirs).

A move copies the log beside its new place by a thread while clients continue using it, catches up until little is missing,
and then, in one step of the loop, copies the rest and puts the copy in the log's place. The partition stays the same
object, so nobody who waits on it notices. A broker that ends in between begins again at its next start.
"""

import logging
import os
from asyncio import CancelledError, Semaphore, Task, gather, sleep
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.upkeep.log_directories import UnfinishedMove
from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition
from penstock.storage.moving import FutureLog, SourceFault

if TYPE_CHECKING:
    from penstock.broker.facets import WithDiskFaults, WithLoop, WithPartitions, WithPools, WithStopping
    from penstock.broker.partitions.partition import Partition
    from penstock.storage.log_directory import LogDirectory

    class Needs(WithDiskFaults, WithLoop, WithPartitions, WithPools, WithStopping, Protocol): ...


log = logging.getLogger("penstock.broker")

MAX_AT_ONCE: Final = 2
SWAP_POLL_SECONDS: Final = 0.05
LAST_STEP_BYTES: Final = 1024 * 1024
"""What may be copied while everybody waits; about a millisecond."""
ROUNDS_BEFORE_A_LARGER_STEP: Final = 8
"""A producer that is about as fast as the copying would keep a move from its end: the last step doubles from here on."""


class Move:
    __slots__ = ("future", "target", "task")

    def __init__(self, future: FutureLog, target: "LogDirectory", task: "Task[None]") -> None:
        self.future = future
        self.target = target
        self.task = task


class LogMoves:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._moves: dict[Partition, Move] = {}
        self._turn = Semaphore(MAX_AT_ONCE)

    def all(self) -> "list[tuple[Partition, Move]]":
        return list(self._moves.items())

    def begin(self, partition: "Partition", target: "LogDirectory") -> None:
        """Towards another directory than before ends the move before; to where the log is ends it, too."""
        known = self._moves.get(partition)
        if known is not None:
            if known.target is target:
                return
            self.cancel(partition)
        if os.path.dirname(partition.log.directory) == target.path:
            return
        future = FutureLog(self._node.partitions.disk, partition.log, target.path, os.urandom(16))
        task = self._node.loop.create_task(self._run(partition, future, target))
        self._moves[partition] = Move(future, target, task)

    def begin_again(self, unfinished: list[UnfinishedMove]) -> None:
        """Those that the last run of the broker did not finish."""
        for topic_partition, target in unfinished:
            try:
                self.begin(self._node.partitions.get(*topic_partition), target)
            except ApiError:
                pass  # deleted meanwhile, or offline

    def cancel(self, partition: "Partition") -> None:
        move = self._moves.pop(partition, None)
        if move is not None:
            move.task.cancel()

    def cancel_all_of(self, path: str) -> None:
        """A directory failed: what moves to it or from it stays where it is."""
        for partition, move in self.all():
            if path in (move.target.path, os.path.dirname(partition.log.directory)):
                self.cancel(partition)

    async def stop(self) -> None:
        tasks = [move.task for _, move in self.all()]
        for task in tasks:
            task.cancel()
        await gather(*tasks, return_exceptions=True)

    async def _run(self, partition: "Partition", future: FutureLog, target: "LogDirectory") -> None:
        name = TopicPartition(partition.topic, partition.index)
        try:
            async with self._turn:
                # A compacted segment on its way in has files whose names are about to change. No further one begins: the
                # cleaner leaves logs that are being moved alone.
                while partition.log.swap is not None and not partition.is_gone:
                    await sleep(SWAP_POLL_SECONDS)
                await self._node.pools.bulk.run(future.create)
                if not await self._catch_up(partition, future):
                    return
                self._node.partitions.replace_log(partition, future.finish(), target)
            log.info("%s moved to %s", name, target.path)
        except SourceFault as error:
            self._node.report_disk_fault(f"cannot read {name} to move it", error, partition)
        except OSError as error:
            self._node.report_disk_fault(f"cannot move {name} to {target.path}", error, path=target.path)
        except CancelledError:
            raise
        except Exception:
            log.exception("moving %s failed", name)
        finally:
            move = self._moves.get(partition)
            if move is not None and move.future is future:
                del self._moves[partition]
            if not self._node.is_stopping:
                self._node.pools.bulk.run(_discard, future)

    async def _catch_up(self, partition: "Partition", future: FutureLog) -> bool:
        """False when there is nothing to move any more."""
        rounds = 0
        while not partition.is_gone:
            parts = future.plan()
            allowed = LAST_STEP_BYTES << max(0, rounds - ROUNDS_BEFORE_A_LARGER_STEP)
            is_still = not partition.log.is_being_cut
            if rounds and is_still and sum(part.end - part.position for part in parts) <= allowed:
                return True
            await self._node.pools.bulk.run(future.copy, parts)
            rounds += 1
        return False


def _discard(future: FutureLog) -> None:
    """Whatever is left under the copy's own name; nothing, when it was adopted."""
    try:
        future.discard()
    except OSError as error:
        log.error("cannot remove %s: %s", future.path, error)
