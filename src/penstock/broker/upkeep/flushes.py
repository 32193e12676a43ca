"""Flushes of logs by threads, one at a time for each partition.

Who asks while one runs waits for the next, together with all others who asked meanwhile: with flush.messages=1 the device
syncs once for many producers.
"""

from asyncio import Task, current_task, wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition


class Flushes:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._running: dict[Partition, Task[OSError | None]] = {}
        self._waiting: dict[Partition, Task[OSError | None]] = {}

    def ask(self, partition: "Partition") -> "Task[OSError | None]":
        """A flush of everything appended so far; its result is None, or what went wrong (and was reported)."""
        # First of all the one that has not begun, whether or not the one that it waits for has ended by now.
        waiting = self._waiting.get(partition)
        if waiting is not None:
            return waiting
        running = self._running.get(partition)
        task = self._node.loop.create_task(self._flush(partition, running))
        (self._running if running is None else self._waiting)[partition] = task
        return task

    async def _flush(self, partition: "Partition", previous: "Task[OSError | None] | None") -> OSError | None:
        if previous is not None:
            await wait((previous,))
            me = self._waiting.pop(partition)
            assert me is current_task()
            self._running[partition] = me
        try:
            return await self.flush(partition)
        finally:
            # Whoever waits for this task has not run yet, and puts itself here when it does; nobody else does before.
            del self._running[partition]

    async def flush(self, partition: "Partition", *, include_active: bool = True) -> OSError | None:
        log = partition.log
        try:
            flush = log.prepare_flush(include_active=include_active)
            if flush is not None:
                await self._node.pools.syncs.run(flush.run)
                log.flushed(flush)
        except OSError as error:
            self._node.report_disk_fault(f"cannot flush {partition}", error, partition)
            return error
        return None
