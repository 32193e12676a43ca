"""Flushes of logs by threads, one at a time for each partition.

A request that comes while a flush runs waits for the next one, together with all others: with flush.messages=1 one sync serves
many producers.
"""

from asyncio import Task, current_task, wait
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.metrics.quantiles import Histogram
from penstock.broker.metrics.request_counts import NS_PER_US

if TYPE_CHECKING:
    from penstock.broker.facets import WithDiskFaults, WithLoop, WithPools
    from penstock.broker.partitions.partition import Partition

    class Needs(WithDiskFaults, WithLoop, WithPools, Protocol): ...


class Flushes:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._running: dict[Partition, Task[OSError | None]] = {}
        self._waiting: dict[Partition, Task[OSError | None]] = {}
        self.times: Final = Histogram()
        """Microseconds that flushes took, with the wait for a thread."""
        self.count = 0

    def ask(self, partition: "Partition") -> "Task[OSError | None]":
        """A flush of everything appended so far; its result is None, or what went wrong (and was reported)."""
        waiting = self._waiting.get(partition)
        if waiting is None:
            waiting = self._waiting[partition] = self._node.loop.create_task(self._flush(partition))
        return waiting

    async def _flush(self, partition: "Partition") -> OSError | None:
        previous = self._running.get(partition)
        if previous is not None:
            await wait((previous,))
        me = self._waiting.pop(partition)
        assert me is current_task()
        self._running[partition] = me
        try:
            return await self.flush(partition)
        finally:
            del self._running[partition]

    async def flush(self, partition: "Partition", *, include_active: bool = True) -> OSError | None:
        log = partition.log
        try:
            flush = log.prepare_flush(include_active=include_active)
            if flush is not None:
                began_ns = perf_counter_ns()
                await self._node.pools.syncs.run(flush.run)
                self.count += 1
                self.times.note((perf_counter_ns() - began_ns) // NS_PER_US)
                log.flushed(flush)
                partition.flushed()
        except OSError as error:
            partition.flush_failed()
            self._node.report_disk_fault(f"cannot flush {partition}", error, partition)
            return error
        return None
