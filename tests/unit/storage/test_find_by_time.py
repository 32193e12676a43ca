"""Finding a time in many segments, where timestamps also go down, agrees with looking at every record."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.records.walk import finish
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.page_cache import NotInMemory
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk

TIMESTAMPS = st.lists(st.integers(1, 40), min_size=1, max_size=40)


@given(timestamps=TIMESTAMPS, asked=st.integers(0, 45), start=st.integers(0, 39))
def test_the_first_record_that_is_late_enough_is_found(
    tmp_path_factory, timestamps: list[int], asked: int, start: int
) -> None:
    directory: Path = tmp_path_factory.mktemp("log") / "t-0"
    log = Log.open(OsDisk(), str(directory), LogOptions(), SystemClock(), clean=True)
    for number, timestamp in enumerate(timestamps):
        batch = build_batch([(None, b"v", (), timestamp)])
        log.append(memoryview(batch), read_header(batch), 0)
        if number % 3 == 2:
            log.roll()
    start = min(start, len(timestamps) - 1)
    log.advance_start_offset(start)
    for _ in range(2):  # the second time from what the first one kept
        found = finish(log.offset_for_timestamp(asked))
        wanted = next((o for o, t in enumerate(timestamps) if o >= start and t >= asked), None)
        assert (None if found is None else found.offset) == wanted
    log.close()


def test_a_search_in_files_that_are_not_in_memory_has_threads_read_them() -> None:
    """The test disk would not let it wait on the loop."""
    disk = MemoryDisk()
    log = Log.open(disk, "/data/t-0", LogOptions(index_interval_bytes=200), SystemClock(), clean=True)
    for timestamp in range(60):
        batch = build_batch([(None, b"v" * 50, (), timestamp)])
        log.append(memoryview(batch), read_header(batch), 0)
        if timestamp % 20 == 19:
            log.roll()
    log.close()
    log = Log.open(disk, "/data/t-0", LogOptions(), SystemClock(), clean=True)
    disk.cool()

    async def search() -> tuple[int | None, int]:
        steps, loads, work = log.offset_for_timestamp(33), 0, None
        try:
            while True:
                work = steps.send(None if work is None else await asyncio.to_thread(work))
                loads += isinstance(work, NotInMemory)
        except StopIteration as done:
            return done.value.offset, loads

    assert asyncio.run(search()) == (33, 5)  # three time indexes, an offset index, a log


@pytest.mark.parametrize("pauses", range(7))
def test_a_search_goes_on_when_the_segments_that_it_looks_at_are_removed_meanwhile(pauses: int) -> None:
    """Else the missing files of a removed segment would be a fault of the disk, which takes the log directory offline."""
    disk = MemoryDisk()
    options = LogOptions(index_interval_bytes=200)
    log = Log.open(disk, "/data/t-0", options, SystemClock(), clean=True)
    for timestamp in range(60):
        batch = build_batch([(None, b"v" * 50, (), timestamp)])
        log.append(memoryview(batch), read_header(batch), 0)
        if timestamp % 20 == 19:
            log.roll()
    log.close()
    log = Log.open(disk, "/data/t-0", options, SystemClock(), clean=True)
    disk.cool()
    steps = log.offset_for_timestamp(13)

    def search() -> int:
        work = None
        for seen in count():
            try:
                work = steps.send(None if work is None else work())
            except StopIteration as done:
                return int(done.value.offset)
            if seen == pauses:
                log.advance_start_offset(20)
        raise AssertionError

    assert search() in (13, 20)  # the file of a segment that was open stays readable
