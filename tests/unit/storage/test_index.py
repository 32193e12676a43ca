import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.files import OsDisk
from penstock.storage.index import OffsetIndex, TimeIndex


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "00000000000000000100.index")


def filled(disk: OsDisk, path: str, count: int) -> OffsetIndex:
    """Entries for offsets 101, 103, 105 … at positions 1000, 2000, 3000 …"""
    index = OffsetIndex(disk, path, 100)
    for at in range(count):
        index.append(101 + 2 * at, 1000 * (at + 1))
    return index


@pytest.mark.parametrize("count", [0, 1, 5, 256, 300, 2000])
@pytest.mark.parametrize("written", [True, False])
def test_a_lookup_gives_the_last_position_not_above_the_offset(
    disk: OsDisk, path: str, count: int, written: bool
) -> None:
    index = filled(disk, path, count)
    if written:
        index.write()
    for offset in (100, 101, 102, 103, 104, 101 + count, 101 + 2 * count, 10**6):
        expected = max((1000 * (at + 1) for at in range(count) if 101 + 2 * at <= offset), default=0)
        assert index.lookup(offset) == expected
    assert index.last_position() == 1000 * count


def test_entries_are_kafkas_eight_bytes(disk: OsDisk, path: str) -> None:
    filled(disk, path, 2).write()
    assert Path(path).read_bytes().hex() == "00000001000003e8" + "00000003000007d0"


def test_an_index_is_read_back_from_its_file(disk: OsDisk, path: str) -> None:
    filled(disk, path, 10).write()
    index = OffsetIndex(disk, path, 100, 80)
    assert index.lookup(106) == 3000
    index.append(200, 99_000)
    assert index.lookup(300) == 99_000
    assert index.lookup(199) == 10_000


@settings(max_examples=50)
@given(st.integers(0, 600), st.integers(90, 1400))
def test_truncation_drops_exactly_the_entries_at_or_above_an_offset(count: int, offset: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        index = filled(OsDisk(), f"{directory}/x.index", count)
        index.truncate_to(offset)
        assert [relative for relative, _ in index.entries()] == [
            1 + 2 * at for at in range(count) if 101 + 2 * at < offset
        ]


def test_a_time_index_takes_only_later_timestamps(disk: OsDisk, path: str) -> None:
    index = TimeIndex(disk, path, 100)
    for timestamp, offset in ((50, 110), (50, 120), (40, 130), (60, 140)):
        index.append_if_later(timestamp, offset)
    index.write()
    assert Path(path).read_bytes().hex() == "00000000000000320000000a" + "000000000000003c00000028"
    assert index.lookup(49) == 100
    assert index.lookup(55) == 110
    assert index.lookup(60) == 140


def test_the_last_timestamp_is_read_back_before_the_next_is_compared(disk: OsDisk, path: str) -> None:
    index = TimeIndex(disk, path, 100)
    index.append_if_later(50, 110)
    index.write()
    index = TimeIndex(disk, path, 100, 12)
    index.append_if_later(50, 120)
    index.append_if_later(51, 130)
    assert list(index.entries()) == [(50, 10), (51, 30)]
    assert index.last_entry() == (51, 130)


def test_an_index_says_when_it_is_full(disk: OsDisk, path: str) -> None:
    assert filled(disk, path, 4).is_full(32)
    assert not filled(disk, path, 3).is_full(32)
