"""Compaction, on the broker's side: which log, when, by which worker; and the swap of what comes back.

Every log.cleaner.backoff.ms the dirtiest log that is due goes to a worker process, up to log.cleaner.threads of them at a
time; when one is done the next is looked for at once. A worker that has had nothing to do for a while is ended.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.partitions.cold_reads import look_up
from penstock.broker.upkeep.cleaner_status import CleanerStatus
from penstock.broker.upkeep.compaction_worker import IDLE_SECONDS, CompactionWorker, IdleWorkers, WorkerDied
from penstock.model.ids import TopicPartition
from penstock.storage import names
from penstock.storage.options import NEVER

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithClock,
        WithConfig,
        WithDiskFaults,
        WithLogMoves,
        WithLoop,
        WithPartitions,
        WithPools,
    )
    from penstock.broker.partitions.partition import Partition
    from penstock.storage.compaction.choose import Cleanable
    from penstock.storage.compaction.task import CleanedSegment, CleaningResult, CleaningTask
    from penstock.storage.log import Log

    class Needs(
        WithClock, WithConfig, WithDiskFaults, WithLogMoves, WithLoop, WithPartitions, WithPools, Protocol
    ): ...


log = logging.getLogger("penstock.broker")

SHORTEST_BACKOFF_SECONDS: Final = 0.02
BUDGET_SECONDS: Final = 0.002
MAX_FAILURES: Final = 3
"""In a row; then the log is left alone until the broker starts again."""
RETRY_SECONDS: Final = 15.0
MAX_MAP_BYTES: Final = 2**31


class _Cleaned:
    """A partition that this broker compacts."""

    __slots__ = ("cuts", "failures", "key", "not_before", "partition", "status", "task")

    def __init__(self, partition: "Partition", key: TopicPartition) -> None:
        self.partition = partition
        self.key = key
        self.cuts = 0  # of its log, when it was last looked at
        self.status = CleanerStatus()
        self.failures = 0
        self.not_before = 0.0
        self.task: asyncio.Task[None] | None = None


class _Abandoned(Exception):
    """The log is no longer what the cleaning began with; it is looked at again later."""


class Cleaner:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None
        self._known: dict[TopicPartition, _Cleaned] = {}
        self._idle_workers = IdleWorkers(node.clock.monotonic)
        self._look_again = asyncio.Event()
        self._looked_at: float | None = None  # when all logs were last looked at, by the monotonic clock

    def start(self) -> None:
        if self._node.config.get("log.cleaner.enable"):
            self._task = self._node.loop.create_task(self._run())

    async def stop(self) -> None:
        """Cleanings that run are dropped: the next start does them again."""
        tasks = [known.task for known in self._known.values() if known.task is not None]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._idle_workers.end_all()

    def status(self, topic: str, partition: int) -> CleanerStatus | None:
        """None where nothing was ever to be compacted."""
        known = self._known.get(TopicPartition(topic, partition))
        return None if known is None else known.status

    @property
    def looked_ms_ago(self) -> int:
        """Since the logs were last looked at; -1 before the first time."""
        if self._looked_at is None:
            return -1
        return int((self._node.clock.monotonic() - self._looked_at) * 1000)

    @property
    def is_dead(self) -> bool:
        return self._task is not None and self._task.done()

    # --- choosing

    async def _run(self) -> None:
        get = self._node.config.get
        for directory in self._node.partitions.log_directories.online:
            if directory.cleaner_offsets.problem:
                log.warning(
                    "compaction begins at the start of all logs in %s: %s",
                    directory.path,
                    directory.cleaner_offsets.problem,
                )
        while True:
            try:
                began = await self._begin_next()
            except Exception:
                log.exception("looking for logs to compact failed")
                began = False
            if began:
                continue
            self._end_cleanings_of_gone_partitions()
            self._forget_gone()
            await self._idle_workers.end_old()
            self._look_again.clear()
            seconds = max(get("log.cleaner.backoff.ms") / 1000, SHORTEST_BACKOFF_SECONDS)
            try:
                # Not wait_for: before Python 3.12 it may lose a cancellation that comes with its own timeout, and this
                # loop would never end.
                async with asyncio.timeout(min(seconds, IDLE_SECONDS)):
                    await self._look_again.wait()
            except TimeoutError:
                pass

    def _end_cleanings_of_gone_partitions(self) -> None:
        for known in self._known.values():
            if known.task is not None and known.partition.is_gone:
                known.task.cancel()

    def _forget_gone(self) -> None:
        for key, known in list(self._known.items()):
            if known.partition.is_gone and known.task is None:
                del self._known[key]

    async def _begin_next(self) -> bool:
        """Whether a cleaning was begun, so that there may be another."""
        running = sum(known.task is not None for known in self._known.values())
        if running >= self._node.config.get("log.cleaner.threads"):
            return False
        found = await self._examine_all()
        if not found:
            return False
        from penstock.storage.compaction.choose import dirtiest

        chosen = dirtiest((key, cleanable) for key, (_, cleanable) in found.items())
        if chosen is None:
            return False
        known, cleanable = found[chosen]
        known.task = self._node.loop.create_task(self._clean(known, cleanable))
        return True

    async def _examine_all(self) -> "dict[object, tuple[_Cleaned, Cleanable]]":
        node = self._node
        time = node.clock.monotonic
        began = self._looked_at = time()
        found: dict[object, tuple[_Cleaned, Cleanable]] = {}
        moving = {partition for partition, _ in node.log_moves.all()}
        for partition in list(node.partitions):
            if time() - began > BUDGET_SECONDS:
                await asyncio.sleep(0)
                began = time()
            if partition.is_gone or not partition.log.options.compacted or len(partition.log.segments) < 2:
                continue
            known = self._known_of(partition)
            if known.task is not None or known.status.uncleanable_reason or partition in moving:
                continue
            try:
                cleanable = await look_up(node.pools.reads, partial(self._examine, known))
            except OSError as error:
                node.report_disk_fault(f"cannot look at {partition} for compaction", error, partition)
                continue
            known.status.dirty_ratio = cleanable.dirty_ratio
            known.status.is_cleanable = cleanable.is_due
            known.status.overdue_ms = cleanable.overdue_ms
            if cleanable.is_due and known.not_before <= time():
                found[TopicPartition(partition.topic, partition.index)] = known, cleanable
        return found

    def _known_of(self, partition: "Partition") -> _Cleaned:
        key = TopicPartition(partition.topic, partition.index)
        known = self._known.get(key)
        if known is None or known.partition is not partition:  # another topic of the same name
            known = self._known[key] = _Cleaned(partition, key)
        return known

    def _examine(self, known: _Cleaned) -> "Cleanable":
        from penstock.storage.compaction.choose import LogFacts, SegmentFacts, examine

        partition = known.partition
        home = self._node.partitions.log_directories.home(known.key)
        held = partition.log
        known.cuts = held.cuts
        options = held.options
        asks_age = options.min_compaction_lag_ms > 0
        asks_first = options.max_compaction_lag_ms < NEVER
        facts = LogFacts(
            segments=[
                SegmentFacts(
                    segment.base_offset,
                    segment.size_bytes,
                    segment.max_timestamp if asks_age else -1,
                    segment.load_first_timestamp() if asks_first and segment.size_bytes else -1,
                )
                for segment in held.segments
            ],
            start_offset=held.start_offset,
            log_end_offset=held.end_offset,
            # A record that is not on the device must not be the reason why one that is goes: the power may fail.
            last_stable_offset=min(partition.last_stable_offset, held.recovery_point),
            checkpoint=None if home is None else home.cleaner_offsets.get(known.key),
            min_cleanable_dirty_ratio=options.min_cleanable_dirty_ratio,
            min_compaction_lag_ms=options.min_compaction_lag_ms,
            max_compaction_lag_ms=options.max_compaction_lag_ms,
        )
        return examine(facts, now_ms=self._node.clock.now_ms())

    # --- cleaning

    async def _clean(self, known: _Cleaned, cleanable: "Cleanable") -> None:
        partition = known.partition
        status = known.status
        try:
            await self._clean_log(known, partition.log, cleanable)
            known.failures = 0
        except _Abandoned:
            known.not_before = self._node.clock.monotonic() + 1.0
        except WorkerDied as error:
            self._failed(known, f"its worker process died: {error}")
        except OSError as error:
            self._node.report_disk_fault(f"cannot compact {partition}", error, partition)
            self._failed(known, str(error))
        except Exception:
            log.exception("compacting %s failed", partition)
            self._failed(known, "see the line before")
        finally:
            status.progress = None
            known.task = None
            self._look_again.set()

    def _failed(self, known: _Cleaned, reason: str, *, for_good: bool = False) -> None:
        if known.partition.is_gone:
            return
        known.failures += 1
        known.not_before = self._node.clock.monotonic() + RETRY_SECONDS
        if for_good or known.failures >= MAX_FAILURES:
            known.status.uncleanable_reason = reason
            known.status.is_cleanable = False
            log.error("%s is not compacted until the broker is restarted: %s", known.partition, reason)
        else:
            log.warning("could not compact %s, will try again: %s", known.partition, reason)

    async def _clean_log(self, known: _Cleaned, held: "Log", cleanable: "Cleanable") -> None:
        from penstock.storage.compaction.task import CleanedSegment, CleaningResult, Failed

        began = self._node.clock.monotonic()
        known.status.progress = 0.0
        worker = await self._idle_workers.take()
        is_whole = False  # the conversation with the worker came to its end
        try:
            self._ensure_same(known, held)
            async for message in worker.run(self._task_of(held, cleanable)):
                is_whole = isinstance(message, (CleaningResult, Failed))
                if isinstance(message, Failed):
                    if not held.is_deleted:
                        self._failed(known, message.reason, for_good=message.corrupt)
                    return
                self._ensure_same(known, held)
                if isinstance(message, CleanedSegment):
                    await self._swap(known.partition, held, message)
                elif isinstance(message, CleaningResult):
                    self._note(known, message, self._node.clock.monotonic() - began)
                    await self._write_checkpoint(known.key, message.next_dirty_offset)
                else:
                    known.status.progress = message
        finally:
            if is_whole and worker.is_running:
                self._idle_workers.put_back(worker)
            else:
                await asyncio.shield(self._drop(worker, held))

    def _ensure_same(self, known: _Cleaned, held: "Log") -> None:
        if known.partition.is_gone or known.partition.log is not held or held.cuts != known.cuts:
            raise _Abandoned

    def _task_of(self, held: "Log", cleanable: "Cleanable") -> "CleaningTask":
        from penstock.storage.compaction.task import ActiveProducer, CleaningTask, SourceSegment

        get = self._node.config.get
        options = held.options
        threads = max(get("log.cleaner.threads"), 1)
        return CleaningTask(
            directory=held.directory,
            segments=[
                SourceSegment(
                    segment.base_offset,
                    segment.size_bytes,
                    segment.offset_index.size_bytes,
                    segment.time_index.size_bytes,
                )
                for segment in held.segments
                if segment.base_offset < cleanable.end_offset
            ],
            first_dirty_offset=cleanable.first_dirty_offset,
            end_offset=cleanable.end_offset,
            now_ms=self._node.clock.now_ms(),
            delete_retention_ms=options.delete_retention_ms,
            segment_bytes=options.segment_bytes,
            segment_index_bytes=options.segment_index_bytes,
            index_interval_bytes=options.index_interval_bytes,
            producers=[ActiveProducer(*fields) for fields in held.producers.last_offsets()],
            map_bytes=min(get("log.cleaner.dedupe.buffer.size") // threads, MAX_MAP_BYTES),
            map_load_factor=get("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=max(get("log.cleaner.io.buffer.size") // threads // 2, 1),
            max_bytes_per_second=get("log.cleaner.io.max.bytes.per.second") / threads,
        )

    async def _swap(self, partition: "Partition", held: "Log", cleaned: "CleanedSegment") -> None:
        """A crash at any step leaves the old segments or the new one. See storage/compaction/swap.py."""
        from penstock.storage.compaction.swap import Swap

        node = self._node
        if any(moving is partition for moving, _ in node.log_moves.all()):
            raise _Abandoned
        swap = Swap(node.partitions.disk, held, cleaned)
        if not swap.begin():
            raise _Abandoned
        await self._node.pools.syncs.run(swap.sync)
        removal = swap.take_over()
        if removal is None:
            raise _Abandoned
        node.partitions.run_later(removal)
        await self._node.pools.syncs.run(swap.sync)
        swap.finish()
        await self._node.pools.syncs.run(swap.sync)

    def _note(self, known: _Cleaned, result: "CleaningResult", seconds: float) -> None:
        status = known.status
        status.runs += 1
        status.last_run_ms = self._node.clock.now_ms()
        status.last_seconds = seconds
        status.bytes_read = result.bytes_read
        status.bytes_written = result.bytes_written
        status.records_kept = result.records_kept
        status.records_removed = result.records_read - result.records_kept
        status.dirty_ratio = 0.0
        status.is_cleanable = False
        status.overdue_ms = 0
        log.info(
            "compacted %s up to offset %s: %.1f MB became %.1f MB, %s of %s records stay, in %.1f s",
            known.partition, result.next_dirty_offset, result.bytes_read / 1e6, result.bytes_written / 1e6,
            result.records_kept, result.records_read, seconds,
        )  # fmt: skip
        if result.null_keys:
            log.warning("compacting %s dropped %s records without a key", known.partition, result.null_keys)

    async def _drop(self, worker: CompactionWorker, held: "Log") -> None:
        """Of an unfinished task nothing stays."""
        await worker.kill()
        disk = self._node.partitions.disk

        def delete() -> None:
            for name, _ in disk.list_files(held.directory):
                if name.endswith(names.CLEANED_SUFFIX):
                    disk.delete(f"{held.directory}/{name}")

        try:
            await self._node.pools.bulk.run(delete)
        except OSError:
            pass  # the log is gone, or its disk; an open deletes what is left

    async def _write_checkpoint(self, key: TopicPartition, offset: int) -> None:
        home = self._node.partitions.log_directories.home(key)
        if home is not None:
            home.cleaner_offsets.set(key, offset)
            await self._node.pools.syncs.run(home.cleaner_offsets.write)
