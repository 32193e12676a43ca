"""The log against a plain list of batches: the same appends, cuts, reopenings and crashes leave the same
batches.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.errors import ApiError, ErrorCode
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import NOW_MS, StillClock, close_cleanly, make_batch, stored_bytes

Model = list[tuple[int, int, bytes]]  # (base offset, next offset, bytes)

OPTIONS = LogOptions(segment_bytes=900, index_interval_bytes=150)

appends = st.tuples(st.just("append"), st.integers(1, 6), st.integers(0, 120))
operations = st.lists(
    st.one_of(
        appends,
        appends,
        appends,
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("delete records"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("flush"), st.just(0), st.just(0)),
    ),
    max_size=30,
)


class Pair:
    """A log and the list it must agree with."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.clock = StillClock()
        self.model: Model = []
        self.start = 0
        self.end = 0
        self.log = self.open()

    def open(self, *, clean: bool = False, recovery_point: int = 0) -> Log:
        return Log.open(
            OsDisk(),
            self.directory,
            OPTIONS,
            self.clock,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=self.start,
        )

    def do(self, name: str, number: int, value_bytes: int) -> None:
        if name == "append":
            self.clock.ms += 7
            batch, header = make_batch(number, value_bytes=value_bytes, timestamp=self.clock.ms)
            assert self.log.append(batch, header, 0) == self.end
            self.model.append((self.end, self.end + number, bytes(batch)))
            self.end += number
        elif name == "roll":
            self.log.roll()
        elif name == "truncate":
            offset = max(self.end - number, 0)
            self.log.truncate_to(offset)
            while self.model and self.model[-1][1] > offset:
                self.model.pop()
            first = self.log.segments[0].base_offset
            self.end = self.model[-1][1] if self.model else min(self.end, offset if offset < first else first)
            self.start = min(self.start, self.end)
        elif name == "delete records":
            self.start = max(self.start, min(self.start + number, self.end))
            removal = self.log.advance_start_offset(self.start)
            if removal is not None:
                removal.run()
            first = self.log.segments[0].base_offset
            self.model = [batch for batch in self.model if batch[0] >= first]
        elif name == "reopen":
            close_cleanly(self.log)
            self.log = self.open(clean=True)
        elif name == "kill":
            recovery_point = self.log.recovery_point
            self.log.close()
            self.log = self.open(recovery_point=recovery_point)
            assert self.log.report.truncated_bytes == 0
        elif name == "flush":
            self.log.flush()

    def check(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        assert stored_bytes(self.log) == b"".join(batch for _, _, batch in self.model)


@settings(max_examples=60)
@given(operations)
def test_a_log_holds_what_a_list_would(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(f"{directory}/orders-0")
        for step in steps:
            pair.do(*step)
            pair.check()


@settings(max_examples=60)
@given(
    st.lists(appends, min_size=1, max_size=25),
    st.lists(st.tuples(st.integers(0, 150), st.integers(0, 900), st.integers(0, 150), st.booleans())),
    st.booleans(),
)
def test_any_read_gives_whole_leading_batches_below_the_end_it_was_given(
    steps: list[tuple[str, int, int]], reads: list[tuple[int, int, int, bool]], reopened: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(f"{directory}/orders-0")
        for step in steps:
            pair.do(*step)
        if reopened:
            pair.do("reopen", 0, 0)
        for offset, max_bytes, back, at_least_one in reads:
            check_read(pair, offset, max_bytes, max(pair.end - back, 0), at_least_one)


def check_read(pair: Pair, offset: int, max_bytes: int, end_offset: int, at_least_one: bool) -> None:
    if offset > pair.end:
        with pytest.raises(ApiError) as refusal:
            pair.log.read(offset, max_bytes, end_offset=end_offset)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        return
    found = pair.log.read(offset, max_bytes, end_offset=end_offset, at_least_one=at_least_one)
    data = found.file.read_at(found.position, found.size_bytes)
    assert len(data) == found.size_bytes
    visible = [batch for batch in pair.model if batch[1] > offset and batch[1] <= end_offset]
    if not visible or offset >= end_offset:
        assert data == b""
        return
    first = visible[0][2]
    if not at_least_one and len(first) > max_bytes:
        assert data == b""
        return
    assert found.base_offset == visible[0][0]
    everything = b"".join(batch for _, _, batch in visible)
    assert everything.startswith(data)
    assert len(first) <= len(data) <= max(max_bytes, len(first))


@settings(max_examples=60)
@given(
    st.lists(appends, min_size=1, max_size=20),
    st.integers(0, 2000),
    st.integers(0, 3),
    st.sampled_from(["cut", "flip", "zeros"]),
)
def test_a_crash_at_any_byte_leaves_every_batch_before_it(
    steps: list[tuple[str, int, int]], back: int, lost_indexes: int, damage: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(f"{directory}/orders-0")
        for step in steps:
            pair.do(*step)
        copy = Path(directory) / "copy" / "orders-0"
        shutil.copytree(pair.directory, copy)
        last = sorted(copy.glob("*.log"))[-1]
        size = last.stat().st_size
        at = max(size - back, 0)
        if damage == "flip":
            at = covered_by_crc(pair, at)
        original = last.read_bytes()
        damage_file(last, at, damage)
        at = first_difference(original, last.read_bytes())
        lost = [
            path for path in sorted(copy.iterdir()) if path.suffix in (".index", ".timeindex", ".snapshot")
        ]
        for path in lost[:lost_indexes]:
            path.unlink()
        log = Log.open(OsDisk(), str(copy), OPTIONS, pair.clock, clean=False)
        before = sum(segment.size_bytes for segment in pair.log.segments) - size
        whole: Model = []
        for batch in pair.model:
            if before + at < sum(len(kept[2]) for kept in whole) + len(batch[2]):
                break
            whole.append(batch)
        assert stored_bytes(log) == b"".join(batch for _, _, batch in whole)
        assert log.end_offset == (whole[-1][1] if whole else 0)
        log.append(*make_batch(2), 0)
        assert log.end_offset == (whole[-1][1] if whole else 0) + 2


def covered_by_crc(pair: Pair, at: int) -> int:
    """The same byte of the last segment, or the next one whose change can be noticed: offset and epoch are
    not in the CRC.
    """
    for position, header in pair.log.segments[-1].headers():
        if position <= at < position + header.size_bytes:
            return max(at, position + 16)
    return at


def damage_file(path: Path, at: int, damage: str) -> None:
    if damage == "cut":
        os.truncate(path, at)
    elif damage == "zeros":  # a file system that knew the length but not the content
        size = path.stat().st_size
        os.truncate(path, at)
        os.truncate(path, size + 50)
    else:
        data = bytearray(path.read_bytes())
        data[at : at + 1] = bytes(byte ^ 0x55 for byte in data[at : at + 1])
        path.write_bytes(data)


def first_difference(original: bytes, damaged: bytes) -> int:
    for at, (before, after) in enumerate(zip(original, damaged, strict=False)):
        if before != after:
            return at
    return min(len(original), len(damaged))


def test_the_properties_use_more_than_one_segment(tmp_path: Path) -> None:
    pair = Pair(str(tmp_path / "orders-0"))
    for _ in range(20):
        pair.do("append", 3, 50)
    assert len(pair.log.segments) > 3
    assert pair.clock.ms > NOW_MS
