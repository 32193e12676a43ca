"""Batches that take long to check, and other long walks over records. They are done in steps, so that other clients are not
delayed.

A small request may hold a million records that decompress to 128 MiB. A thread decompresses and compresses the payload, while
the loop runs. Its records are walked on the loop in steps of about a millisecond, one step of all walks in a turn of the loop.
"""

from asyncio import Lock, Semaphore, sleep
from collections.abc import Callable
from typing import Any, Final, TypeVar

from penstock.broker.partitions.client_batch import must_open, validated, wanted
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.later import Later, NowOrLater
from penstock.broker.schemas.checks import SchemaChecks, schema_ids
from penstock.records.batch import BatchHeader, InvalidRecord
from penstock.records.check import Wanted, check_records, invalid
from penstock.records.compression import MAX_DECOMPRESSED_BYTES, NONE, UnfoldsTooLarge
from penstock.records.opening import fold, unfold_batch
from penstock.records.validate import SUMMED_AT_ONCE_BYTES, check_chain_in_steps
from penstock.records.walk import Steps
from penstock.runtime.page_cache import NotInMemory
from penstock.runtime.pools import Pool
from penstock.storage.options import LogOptions

OPENED_TOGETHER: Final = 8
SMALLER_BYTES: Final = 8 * 1024 * 1024
"""So many batches are open at a time that unfold to no more than this; of those that unfold to more, one."""
SEARCHED_TOGETHER: Final = 2
"""Long look-ups by time, each of which may have a batch of any size open."""

Result = TypeVar("Result")


class Openings:
    def __init__(self, codecs: Pool, reads: Pool, schemas: SchemaChecks | None = None) -> None:
        self._schemas = schemas
        self._codecs = codecs
        self._reads = reads
        self._one_step = Lock()
        self._places = Semaphore(OPENED_TOGETHER)
        self._larger = Lock()
        self._searches = Semaphore(SEARCHED_TOGETHER)

    async def check(self, partition: Partition, records: memoryview, now_ms: int) -> memoryview:
        """For a batch that `Partition.append` did not check at once: the batch that is to be stored. ApiError refuses it."""
        options = partition.log.options
        header = await self._validated(options, records, now_ms)
        if not must_open(options, header.codec):
            # A folded one was to be opened when it came: the topic's options have changed.
            if header.codec == NONE:
                await self.in_steps(check_chain_in_steps(records, header.records_count))
            return records
        wants = wanted(options, now_ms)
        try:
            async with self._places:
                return await self._open(partition, records, header, wants, max_bytes=SMALLER_BYTES)
        except UnfoldsTooLarge:
            pass
        try:
            async with self._larger:
                return await self._open(partition, records, header, wants, max_bytes=MAX_DECOMPRESSED_BYTES)
        except UnfoldsTooLarge as error:
            raise invalid(str(error)) from error

    async def _validated(self, options: LogOptions, records: memoryview, now_ms: int) -> BatchHeader:
        if len(records) <= SUMMED_AT_ONCE_BYTES:
            return validated(options, records, now_ms=now_ms)
        return await self._codecs.run(lambda: validated(options, records, now_ms=now_ms, in_thread=True))

    async def _open(
        self, partition: Partition, batch: memoryview, header: BatchHeader, wants: Wanted, *, max_bytes: int
    ) -> memoryview:
        plain = await self._codecs.run(lambda: unfold_batch(batch, header, max_bytes=max_bytes))
        max_timestamp = await self.in_steps(check_records(plain, header, wants))
        validation = partition.log.options.schema_validation
        if validation is not None and self._schemas is not None:
            ids = await self.in_steps(schema_ids(plain, header.records_count, validation))
            await self._schemas.check(partition.topic, validation, ids)
        if wants.codec in (None, header.codec):
            return fold(batch, header, plain, wants, max_timestamp=max_timestamp)
        return await self._codecs.run(lambda: fold(batch, header, plain, wants, max_timestamp=max_timestamp))

    def search(self, steps: Steps[Result]) -> NowOrLater[Result]:
        """What a walk through stored batches returns: now, if one step is enough."""
        try:
            work = next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result
        return Later(self._search_on(steps, work))

    async def _search_on(self, steps: Steps[Result], work: Callable[[], Any] | None) -> Result:
        async with self._searches:
            return await self.in_steps(steps, work)

    async def in_steps(self, steps: Steps[Result], work: Callable[[], Any] | None = None) -> Result:
        """What a walk returns. Others have their turn after each of its steps, and threads do what it asks them for."""
        while True:
            found, damage = None, None
            if work is not None:
                try:
                    pool = self._reads if isinstance(work, NotInMemory) else self._codecs
                    found = await pool.run(work)
                except InvalidRecord as error:
                    damage = error
            async with self._one_step:
                try:
                    work = steps.send(found) if damage is None else steps.throw(damage)
                except StopIteration as done:
                    result: Result = done.value
                    return result
                await sleep(0)
