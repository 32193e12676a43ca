import errno

import pytest

from penstock.storage.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
    encode,
    find_problem,
)
from penstock.testing.disk import MemoryDisk

PATH = "/data/t-0/00000000000000000000.txnindex"
# Producer 1 writes at 0 and ends at 9; meanwhile 2 aborts from 1 to 3, and 3 from 4 to 6; then 2 from 20 to 22.
ENTRIES = [
    AbortedTransaction(2, 1, 3, 0),
    AbortedTransaction(3, 4, 6, 0),
    AbortedTransaction(1, 0, 9, 10),
    AbortedTransaction(2, 20, 22, 23),
]


@pytest.fixture
def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.make_directory("/data/t-0")
    return made


@pytest.fixture
def index(disk: MemoryDisk) -> TransactionIndex:
    made = TransactionIndex(disk, PATH)
    for entry in ENTRIES:
        made.append(entry)
    return made


def test_an_entry_has_kafkas_bytes() -> None:
    assert encode(AbortedTransaction(1, 2, 3, 4)).hex() == "0000" + "".join(
        f"{number:016x}" for number in (1, 2, 3, 4)
    )


def test_the_file_comes_with_the_first_entry_and_holds_each_at_once(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    assert not disk.exists(PATH)
    index.append(ENTRIES[0])
    assert disk.read(PATH) == encode(ENTRIES[0])
    index.append(ENTRIES[1])
    assert disk.size(PATH) == 2 * ENTRY_SIZE
    assert not index.write()


@pytest.mark.parametrize(
    ("from_offset", "up_to_offset", "found", "is_all"),
    [
        (0, 30, [(2, 1), (3, 4), (1, 0), (2, 20)], False),
        (0, 10, [(2, 1), (3, 4), (1, 0)], True),
        (0, 4, [(2, 1), (1, 0)], True),
        (4, 5, [(3, 4), (1, 0)], True),
        (7, 8, [(1, 0)], True),
        (10, 20, [], True),
        (10, 30, [(2, 20)], False),
        (23, 30, [], False),
    ],
)
def test_a_range_meets_what_ends_behind_its_start_and_began_before_its_end(
    index: TransactionIndex, from_offset: int, up_to_offset: int, found: list[tuple[int, int]], is_all: bool
) -> None:
    assert index.overlapping(from_offset, up_to_offset) == (found, is_all)


def test_entries_are_read_from_a_file_that_was_there(disk: MemoryDisk, index: TransactionIndex) -> None:
    again = TransactionIndex(disk, PATH, disk.size(PATH))
    assert again.entries() == ENTRIES
    again.append(AbortedTransaction(9, 30, 31, 32))
    assert TransactionIndex(disk, PATH, disk.size(PATH)).entries_count == 5
    assert again.overlapping(30, 40) == ([(9, 30)], False)


def test_a_large_index_is_not_kept_in_memory(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    for number in range(2500):
        index.append(AbortedTransaction(number, 2 * number, 2 * number + 1, 2 * number + 2))
    assert index._cached is None
    assert index.overlapping(4000, 4003) == ([(2000, 4000), (2001, 4002)], True)
    assert index._cached is None


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (3, 0), (4, 1), (9, 2), (10, 3), (100, 4)])
def test_a_truncation_keeps_what_ended_before(
    disk: MemoryDisk, index: TransactionIndex, offset: int, kept: int
) -> None:
    index.truncate_to(offset)
    assert index.entries() == ENTRIES[:kept]
    assert disk.size(PATH) == kept * ENTRY_SIZE


def test_what_a_full_disk_does_not_take_is_known_and_written_later(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    index.append(ENTRIES[0])
    disk.fail("append", errno.ENOSPC, path="*.txnindex", times=2)
    index.append(ENTRIES[1])
    assert index.entries() == ENTRIES[:2]
    with pytest.raises(OSError, match=r"[Ss]pace"):
        index.write()
    assert index.write()
    index.append(ENTRIES[2])
    assert TransactionIndex(disk, PATH, disk.size(PATH)).entries() == ENTRIES[:3]


def test_what_waits_for_the_disk_can_be_truncated(disk: MemoryDisk) -> None:
    index = TransactionIndex(disk, PATH)
    index.append(ENTRIES[0])
    disk.fail("append", errno.ENOSPC, path="*.txnindex", times=2)
    index.append(ENTRIES[1])
    index.append(ENTRIES[2])
    index.truncate_to(9)
    assert index.entries() == ENTRIES[:2]
    assert index.write()
    assert disk.size(PATH) == 2 * ENTRY_SIZE


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"".join(map(encode, ENTRIES)), ""),
        (b"", ""),
        (encode(ENTRIES[0])[:-1], "33 bytes are no whole number"),
        (b"\0\1" + encode(ENTRIES[0])[2:], "unknown version 1"),
        (encode(ENTRIES[1]) + encode(ENTRIES[0]), "entry 1 says that offset 3 is a marker"),
        (encode(AbortedTransaction(1, 5, 5, 5)), "entry 0 makes no sense"),
        (encode(AbortedTransaction(1, 5, 6, 8)), "entry 0 makes no sense"),
        (encode(AbortedTransaction(1, 5, 50, 51)), "entry 0 says that offset 50 is a marker"),
        (bytes(ENTRY_SIZE), "entry 0 makes no sense"),
    ],
)
def test_what_cannot_be_an_index_is_noticed(data: bytes, problem: str) -> None:
    assert find_problem(data, base_offset=0, end_offset=40).startswith(problem)
    assert bool(find_problem(data, base_offset=0, end_offset=40)) == bool(problem)
