"""What a cleaning does to transactions, with the indexes that the log itself keeps."""

from pathlib import Path

import pytest

from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.storage.transaction_index import AbortedTransaction
from tests.unit.storage.batches import StillClock
from tests.unit.storage.compaction.cleaning import batches, clean, put, put_marker, shown


@pytest.fixture
def log(disk: OsDisk, clock: StillClock, tmp_path: Path) -> Log:
    return Log.open(disk, str(tmp_path / "t-0"), LogOptions(compacted=True), clock)


def entries(log: Log) -> list[AbortedTransaction]:
    return [
        entry
        for segment in log.segments
        if segment.transactions is not None
        for entry in segment.transactions.entries()
    ]


def test_aborted_records_go_and_the_entry_stays_with_its_marker(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "good"))
    put(log, ("a", "aborted"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=False)
    log.roll()
    clean(disk, log)
    assert shown(log) == [(0, "a", "good")]
    assert entries(log) == [AbortedTransaction(7, 1, 2, 3)]
    assert log.aborted_transactions(0, 3) == [(7, 1)]
    assert Path(log.directory, f"{0:020d}.txnindex").stat().st_size == 34


def test_an_entry_goes_when_nothing_is_left_of_its_transaction(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "aborted"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=False)
    put(log, ("b", "1"))
    log.roll()
    log.producers.clear()
    clean(disk, log)
    clean(disk, log)
    assert entries(log) == []
    assert not Path(log.directory, f"{0:020d}.txnindex").exists()
    assert [header.base_offset for header, _ in batches(log)] == [1, 2]


def test_the_entries_of_segments_that_become_one_are_all_there(disk: OsDisk, log: Log) -> None:
    for number in range(3):
        put(log, ("a", "aborted"), producer_id=7 + number, transactional=True)
        put(log, (f"k{number}", "1"))
        put_marker(log, 7 + number, commit=False)
        log.roll()
    clean(disk, log)
    assert len(log.segments) == 2
    assert entries(log) == [
        AbortedTransaction(7, 0, 2, 3),
        AbortedTransaction(8, 3, 5, 6),
        AbortedTransaction(9, 6, 8, 9),
    ]
    reopened = Log.open(disk, log.directory, log.options, StillClock())
    assert reopened.aborted_transactions(0, 9) == [(7, 0), (8, 3), (9, 6)]


def test_what_was_aborted_in_the_clean_part_does_not_hide_what_is_committed_later(
    disk: OsDisk, log: Log
) -> None:
    put(log, ("a", "old"))
    put(log, ("x", "aborted"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=False)
    log.roll()
    dirty_from = clean(disk, log).next_dirty_offset
    put(log, ("a", "new"), producer_id=7, base_sequence=1, transactional=True)
    put_marker(log, 7, commit=True)
    log.roll()
    clean(disk, log, first_dirty_offset=dirty_from)
    assert [(key, value) for _, key, value in shown(log)] == [("a", "new")]


def test_a_transaction_that_ends_behind_what_is_cleaned_counts_as_it_ended(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "good"))
    put(log, ("a", "aborted"), producer_id=7, transactional=True)
    put(log, ("b", "good"))
    put(log, ("b", "committed"), producer_id=8, transactional=True)
    log.roll()
    put_marker(log, 7, commit=False)
    put_marker(log, 8, commit=True)
    clean(disk, log)
    assert [(key, value) for _, key, value in shown(log)] == [("a", "good"), ("b", "committed")]
    assert entries(log) == [AbortedTransaction(7, 1, 4, 3)]
