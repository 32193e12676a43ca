"""Long walks over records: in steps, one of all walks in a turn of the loop, and by threads where that lets the loop run."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest

from penstock.broker.partitions import openings as openings_module
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.later import Later, settled
from penstock.model.errors import ApiError, ErrorCode
from penstock.records import validate as validate_module
from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.records.compression import GZIP, ZSTD
from penstock.records.crc import crc32c
from penstock.records.validate import SUMMED_AT_ONCE_BYTES
from penstock.records.walk import STEP_RECORDS, NotAtOnce, Steps, iterate_records
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.options import LogOptions

NOW_MS = 1_700_000_000_000
MANY = STEP_RECORDS * 3


def in_loop(directory: Path, options: LogOptions, work: Callable[..., Awaitable[None]]) -> None:
    async def run() -> None:
        pools = Pools(asyncio.get_running_loop())
        log = Log.open(OsDisk(), str(directory / "orders-0"), options, SystemClock())
        partition = Partition("orders", 0, log, SystemClock(), leader_epoch=0)
        try:
            await asyncio.wait_for(work(partition, Openings(pools.codecs, pools.reads)), 60)
        finally:
            log.close()
            pools.close()

    asyncio.run(run())


def batch(count: int, *, key: bytes | None = b"k", codec: int = 0) -> memoryview:
    return memoryview(build_batch([(key, b"v", (), NOW_MS + at) for at in range(count)], codec=codec))


@pytest.mark.parametrize("codec", [0, ZSTD])
def test_a_batch_that_is_not_small_is_checked_and_then_stored(tmp_path: Path, codec: int) -> None:
    async def work(partition: Partition, openings: Openings) -> None:
        records = batch(MANY, codec=codec)
        with pytest.raises(NotAtOnce):
            partition.append(records)
        checked = await openings.check(partition, records, NOW_MS)
        assert partition.append(checked, is_checked=True)[0] == 0
        assert partition.log.end_offset == MANY
        with pytest.raises(ApiError, match="without key"):
            await openings.check(partition, batch(MANY, key=None, codec=codec), NOW_MS)

    in_loop(tmp_path, LogOptions(compacted=True), work)


def test_a_folded_batch_that_need_not_be_opened_any_more_is_stored_as_it_came(tmp_path: Path) -> None:
    """The topic's options were changed while it waited for its turn."""

    async def work(partition: Partition, openings: Openings) -> None:
        records = batch(MANY, codec=ZSTD)
        with pytest.raises(NotAtOnce):
            partition.append(records)
        partition.log.options = LogOptions()
        assert await openings.check(partition, records, NOW_MS) is records

    in_loop(tmp_path, LogOptions(compacted=True), work)


def test_it_is_stored_in_the_topics_codec(tmp_path: Path) -> None:
    async def work(partition: Partition, openings: Openings) -> None:
        checked = await openings.check(partition, batch(MANY, codec=ZSTD), NOW_MS)
        assert read_header(checked).codec == GZIP
        assert len(list(iterate_records(checked))) == MANY

    in_loop(tmp_path, LogOptions(compression_codec=GZIP), work)


def test_one_that_unfolds_to_very_much_waits_until_it_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings_module, "SMALLER_BYTES", 1000)

    async def work(partition: Partition, openings: Openings) -> None:
        checks = [openings.check(partition, batch(MANY, codec=ZSTD), NOW_MS) for _ in range(3)]
        assert len(await asyncio.gather(*checks)) == 3
        monkeypatch.setattr(openings_module, "MAX_DECOMPRESSED_BYTES", 1000)
        with pytest.raises(ApiError, match="unfolds to more than 1000 bytes") as refusal:
            await openings.check(partition, batch(MANY, codec=ZSTD), NOW_MS)
        assert refusal.value.code is ErrorCode.INVALID_RECORD

    in_loop(tmp_path, LogOptions(compacted=True), work)


def test_all_walks_together_take_one_step_in_a_turn(tmp_path: Path) -> None:
    async def work(partition: Partition, openings: Openings) -> None:
        turns = 0
        stepped_in: list[int] = []

        def walk() -> Steps[None]:
            for _ in range(4):
                stepped_in.append(turns)
                yield None

        walks = [asyncio.create_task(openings.in_steps(walk())) for _ in range(3)]
        while not all(each.done() for each in walks):
            await asyncio.sleep(0)
            turns += 1
        assert len(stepped_in) == 12
        assert len(set(stepped_in)) == 12, "no turn had two of them"

    in_loop(tmp_path, LogOptions(), work)


@pytest.mark.parametrize("codec", [0, ZSTD])
def test_a_time_is_found_in_a_large_batch(tmp_path: Path, codec: int) -> None:
    async def work(partition: Partition, openings: Openings) -> None:
        partition.append(batch(MANY, codec=codec))
        partition.append(batch(1))
        at_once = openings.search(partition.log.offset_for_timestamp(NOW_MS + MANY))
        assert at_once is None
        last = NOW_MS + MANY - 1
        found = openings.search(partition.log.offset_for_timestamp(last))
        assert isinstance(found, Later)
        assert await settled(found) == (last, MANY - 1, 0)

    in_loop(tmp_path, LogOptions(), work)


def test_a_large_batch_that_is_damaged_is_told_so(tmp_path: Path) -> None:
    async def work(partition: Partition, openings: Openings) -> None:
        records = batch(MANY, codec=ZSTD)
        records[70:90] = bytes(20)
        partition.log.append(records, read_header(records), 0)
        found: Any = openings.search(partition.log.offset_for_timestamp(NOW_MS + 1))
        with pytest.raises(ApiError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
            await found

    in_loop(tmp_path, LogOptions(), work)


def test_the_crc_of_a_very_large_batch_is_computed_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed_in: list[str] = []

    def sum_up(data: memoryview) -> int:
        summed_in.append(current_thread().name)
        return crc32c(data)

    monkeypatch.setattr(validate_module, "crc32c", sum_up)

    async def work(partition: Partition, openings: Openings) -> None:
        value = bytes(SUMMED_AT_ONCE_BYTES)
        records = memoryview(build_batch([(b"k", value, (), NOW_MS)]))
        with pytest.raises(NotAtOnce):
            partition.append(records)
        checked = await openings.check(partition, records, NOW_MS)
        assert partition.append(checked, is_checked=True)[0] == 0
        records[-1] ^= 1
        with pytest.raises(ApiError) as caught:
            await openings.check(partition, records, NOW_MS)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    in_loop(tmp_path, LogOptions(max_message_bytes=2 * SUMMED_AT_ONCE_BYTES), work)
    assert len(summed_in) == 2
    assert all(name.startswith("penstock-codecs") for name in summed_in)
