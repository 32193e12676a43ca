"""Periodic tasks: retention, flushes, checkpoints, expiry of producers, removal of files.

With thousands of partitions these tasks must not delay clients: each walk over the partitions yields every two milliseconds,
and threads do everything that waits for a disk.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.broker.partitions.cold_reads import look_up
from penstock.broker.upkeep.log_directories import is_of_the_disk
from penstock.storage.chores import Removal
from penstock.storage.options import NEVER

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithClock,
        WithConfig,
        WithDiskFaults,
        WithFlushes,
        WithLogMoves,
        WithLoop,
        WithPartitions,
        WithPools,
    )
    from penstock.broker.partitions.partition import Partition

    class Needs(
        WithClock,
        WithConfig,
        WithDiskFaults,
        WithFlushes,
        WithLogMoves,
        WithLoop,
        WithPartitions,
        WithPools,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

TICK_SECONDS: Final = 1.0
SHORTEST_TICK_SECONDS: Final = 0.02
BUDGET_SECONDS: Final = 0.002
LOOK_AT_THE_CLOCK_EVERY: Final = 32
FLUSHES_AT_ONCE: Final = 8
LONGEST_DELAY_MS: Final = 10**9


class Maintenance:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None
        self._removals: set[asyncio.Future[Any]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._last_checkpoint_ms = node.clock.now_ms()
        self._last_expiry_ms = self._last_checkpoint_ms
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._next_retention_ms = 0

    def start(self) -> None:
        node = self._node
        self._next_retention_ms = self._uptime_ms() + node.config.get("log.initial.task.delay.ms")
        node.partitions.run_later = self._remove
        node.log_moves.begin_again(node.partitions.begin_leftovers())
        self._task = node.loop.create_task(self._run())

    async def stop(self) -> None:
        """What waits to be removed is left for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._node.partitions.run_later = Removal.run
        if self._removals:
            await asyncio.gather(*self._removals, return_exceptions=True)

    async def _run(self) -> None:
        interval_seconds = self._node.config.get("log.retention.check.interval.ms") / 1000
        while True:
            await asyncio.sleep(max(min(TICK_SECONDS, interval_seconds), SHORTEST_TICK_SECONDS))
            try:
                await self._tick(self._node.clock.now_ms())
            except OSError as error:
                self._node.report_disk_fault("maintenance", error)
            except Exception:
                log.exception("maintenance failed")

    async def _tick(self, now_ms: int) -> None:
        get = self._node.config.get
        await self._flush_due(now_ms)
        if self._uptime_ms() >= self._next_retention_ms:
            await self._apply_retention(now_ms)
            self._next_retention_ms = self._uptime_ms() + get("log.retention.check.interval.ms")
        start_moved = self._node.partitions.start_offsets_moved
        if start_moved or now_ms - self._last_checkpoint_ms >= get("log.flush.offset.checkpoint.interval.ms"):
            self._last_checkpoint_ms = now_ms
            await self._checkpoint()
        if now_ms - self._last_expiry_ms >= get("producer.id.expiration.check.interval.ms"):
            self._last_expiry_ms = now_ms
            async for partition in self._each_partition():
                expiration_ms = partition.log.options.producer_id_expiration_ms
                partition.log.producers.expire(now_ms=now_ms, expiration_ms=expiration_ms)

    async def _each_partition(self) -> "AsyncIterator[Partition]":
        time = self._node.clock.monotonic
        began = time()
        for number, partition in enumerate(list(self._node.partitions)):
            if number % LOOK_AT_THE_CLOCK_EVERY == 0 and time() - began > BUDGET_SECONDS:
                await asyncio.sleep(0)
                began = time()
            if not partition.is_gone:
                yield partition

    async def _apply_retention(self, now_ms: int) -> None:
        async for partition in self._each_partition():
            try:
                apply = partial(self._node.partitions.apply_retention, partition, now_ms=now_ms)
                while await look_up(self._node.pools.reads, apply):
                    await asyncio.sleep(0)
            except OSError as error:
                self._node.report_disk_fault(f"cannot drop segments of {partition}", error, partition)

    async def _flush_due(self, now_ms: int) -> None:
        """Closed segments go to the device at once, so that a crash re-reads only the active one; the active one when
        flush.ms or flush.messages say so, which by default is never: the page cache survives the process."""
        due: list[tuple[Partition, bool]] = []
        since_ms = self._unflushed_since_ms
        async for partition in self._each_partition():
            held = partition.log
            unflushed = held.end_offset - held.recovery_point
            if unflushed <= 0:
                since_ms.pop(partition, None)
                continue
            options = held.options
            is_due = partition.must_flush
            if options.flush_ms != NEVER:
                is_due = is_due or now_ms - since_ms.setdefault(partition, now_ms) >= options.flush_ms
            if is_due or held.recovery_point < held.segments.active.base_offset:
                due.append((partition, is_due))
        for start in range(0, len(due), FLUSHES_AT_ONCE):
            await asyncio.gather(
                *(
                    self._node.flushes.flush(partition, include_active=is_due)
                    for partition, is_due in due[start : start + FLUSHES_AT_ONCE]
                )
            )
        for partition, is_due in due:
            if is_due:
                since_ms.pop(partition, None)
        for partition in [partition for partition in since_ms if partition.is_gone]:
            del since_ms[partition]

    async def _checkpoint(self) -> None:
        gathering = self._node.partitions.gather_checkpoint()
        while True:
            try:
                next(gathering)
            except StopIteration as gathered:
                job = gathered.value
                break
            await asyncio.sleep(0)
        for path, error in await self._node.pools.syncs.run(job):
            log.error("cannot write the checkpoints of %s: %s", path, error)
            if is_of_the_disk(error):
                self._node.partitions.fail(path, error, "cannot write its checkpoints")

    def _uptime_ms(self) -> int:
        return int(self._node.clock.monotonic() * 1000)

    # --- removing

    def _remove(self, removal: Removal) -> None:
        if removal.delay_ms <= 0:
            self._remove_now(removal)
            return

        def is_due() -> None:
            self._timers.discard(timer)
            self._remove_now(removal)

        timer = self._node.loop.call_later(min(removal.delay_ms, LONGEST_DELAY_MS) / 1000, is_due)
        self._timers.add(timer)

    def _remove_now(self, removal: Removal) -> None:
        future = self._node.pools.bulk.run(removal.run)
        self._removals.add(future)
        future.add_done_callback(self._removed)

    def _removed(self, future: asyncio.Future[Any]) -> None:
        self._removals.discard(future)
        error = None if future.cancelled() else future.exception()
        if error is not None:
            log.error("cannot remove files: %s", error)
