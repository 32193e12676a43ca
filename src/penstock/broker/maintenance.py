"""Chores by the clock: checkpoints, flushes, producer expiry, removal of files. All disk work is done by a thread."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.storage.chores import Removal

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

TICK_SECONDS: Final = 1.0


class Maintenance:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None
        self._removals: set[asyncio.Future[Any]] = set()
        self._last_checkpoint_ms = node.clock.now_ms()
        self._last_expiry_ms = self._last_checkpoint_ms
        self._last_flush_ms: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        self._node.partitions.run_later = self._remove
        self._task = self._node.loop.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._node.partitions.run_later = Removal.run
        if self._removals:
            await asyncio.gather(*self._removals, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._tick(self._node.clock.now_ms())
            except OSError as error:
                self._node.report_disk_fault("maintenance", error)
            except Exception:
                log.exception("maintenance failed")

    async def _tick(self, now_ms: int) -> None:
        get = self._node.config.get
        await self._flush_due(now_ms)
        start_moved = self._node.partitions.start_offsets_moved
        if start_moved or now_ms - self._last_checkpoint_ms >= get("log.flush.offset.checkpoint.interval.ms"):
            self._last_checkpoint_ms = now_ms
            await self._in_thread(self._node.partitions.checkpoint_job())
        if now_ms - self._last_expiry_ms >= get("producer.id.expiration.check.interval.ms"):
            self._last_expiry_ms = now_ms
            for partition in self._node.partitions:
                expiration_ms = partition.log.options.producer_id_expiration_ms
                partition.log.producers.expire(now_ms=now_ms, expiration_ms=expiration_ms)

    async def _flush_due(self, now_ms: int) -> None:
        """Closed segments go to the device at once, so that a crash re-reads only the active one; the active one when
        flush.ms or flush.messages say so, which by default is never: the page cache survives the process."""
        for partition in list(self._node.partitions):
            held = partition.log
            options = held.options
            unflushed = held.end_offset - held.recovery_point
            if not unflushed or partition.is_gone:
                continue
            key = (partition.topic, partition.index)
            waited_ms = now_ms - self._last_flush_ms.setdefault(key, now_ms)
            due = waited_ms >= options.flush_ms or unflushed >= options.flush_messages
            flush = held.prepare_flush(include_active=due)
            if flush is not None:
                await self._in_thread(flush.run)
                held.flushed(flush)
            if due:
                del self._last_flush_ms[key]

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await self._node.loop.run_in_executor(None, work)

    def _remove(self, removal: Removal) -> None:
        future = self._node.loop.run_in_executor(None, removal.run)
        self._removals.add(future)
        future.add_done_callback(self._removed)

    def _removed(self, future: asyncio.Future[Any]) -> None:
        self._removals.discard(future)
        error = None if future.cancelled() else future.exception()
        if error is not None:
            log.error("cannot remove files: %s", error)
