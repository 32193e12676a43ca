"""Transactions in a log: what is undecided, what was aborted, and that both survive whatever happens to the files."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from penstock.records.batch import read_header
from penstock.records.marker import build_marker
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.moving import FutureLog
from penstock.storage.options import LogOptions
from penstock.storage.transaction_index import AbortedTransaction
from tests.unit.storage.batches import NOW_MS, StillClock, append, close_cleanly, make_batch

OpenLog = Callable[..., Log]


def put(log: Log, producer_id: int, *, sequence: int = 0, count: int = 1) -> int:
    batch, header = make_batch(count, producer_id=producer_id, base_sequence=sequence, transactional=True)
    return log.append(batch, header, 0)


def end(log: Log, producer_id: int, *, committed: bool = False, epoch: int = 0) -> int:
    batch = build_marker(
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
        coordinator_epoch=0,
        timestamp_ms=NOW_MS,
    )
    return log.append(memoryview(batch), read_header(batch), 0)


def entries(log: Log) -> list[list[AbortedTransaction]]:
    return [
        segment.transactions.entries() if segment.transactions is not None else [] for segment in log.segments
    ]


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    """Three segments; the transaction of 7 spans all of them."""
    made = open_log()
    put(made, 7)  # 0
    put(made, 8)  # 1
    end(made, 8)  # 2
    made.roll()
    put(made, 8, sequence=1)  # 3
    end(made, 8, committed=True)  # 4
    append(made)  # 5
    made.roll()
    put(made, 8, sequence=2)  # 6
    end(made, 7)  # 7
    return made


EXPECTED = [[AbortedTransaction(8, 1, 2, 0)], [], [AbortedTransaction(7, 0, 7, 6)]]


def index_names(log: Log) -> list[str]:
    return sorted(path.name for path in Path(log.directory).glob("*.txnindex"))


def test_only_aborts_are_noted_in_the_segment_of_their_marker(log: Log) -> None:
    assert entries(log) == EXPECTED
    assert index_names(log) == [f"{0:020d}.txnindex", f"{6:020d}.txnindex"]


def test_the_oldest_open_transaction_says_where_it_is_undecided(log: Log) -> None:
    assert log.producers.first_undecided_offset == 6
    put(log, 9)
    end(log, 8)
    assert log.producers.first_undecided_offset == 8
    end(log, 9, committed=True)
    assert log.producers.first_undecided_offset is None


@pytest.mark.parametrize(
    ("range_", "found"),
    [((0, 8), [(8, 1), (7, 0)]), ((2, 3), [(8, 1), (7, 0)]), ((3, 8), [(7, 0)]), ((7, 8), [(7, 0)])],
)
def test_a_reader_is_told_of_aborts_whose_markers_are_in_later_segments(
    log: Log, range_: tuple[int, int], found: list[tuple[int, int]]
) -> None:
    assert log.aborted_transactions(*range_) == found


def test_markers_without_a_transaction_are_not_noted(open_log: OpenLog) -> None:
    log = open_log()
    end(log, 7)
    end(log, 7)
    assert index_names(log) == []
    assert log.producers.first_undecided_offset is None


def test_a_marker_of_the_next_epoch_ends_the_transaction_and_starts_the_sequence_anew(
    open_log: OpenLog,
) -> None:
    log = open_log()
    put(log, 7, count=3)
    end(log, 7, epoch=1)
    assert entries(log) == [[AbortedTransaction(7, 0, 3, 4)]]
    _, header = make_batch(producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    assert log.producers.check(header, True) is None


@pytest.mark.parametrize("clean", [True, False])
def test_it_is_all_known_after_a_start(log: Log, open_log: OpenLog, clean: bool) -> None:
    if clean:
        close_cleanly(log)
    else:
        log.close()
    again = open_log(clean=clean, recovery_point=log.end_offset if clean else 0)
    assert entries(again) == EXPECTED
    assert again.producers.first_undecided_offset == 6
    assert again.aborted_transactions(0, 8) == [(8, 1), (7, 0)]


@pytest.mark.parametrize("snapshots", [True, False])
def test_a_recovery_from_the_middle_finds_where_a_transaction_began(
    log: Log, open_log: OpenLog, snapshots: bool
) -> None:
    log.close()
    for path in Path(log.directory).glob("*.snapshot") if not snapshots else ():
        path.unlink()
    (Path(log.directory) / f"{6:020d}.txnindex").unlink()
    again = open_log(recovery_point=6)
    assert again.report.rebuilt == [6]
    assert entries(again) == EXPECTED


@pytest.mark.parametrize("damage", [b"\0", b"\0\1" + bytes(32), None])
def test_an_index_that_is_damaged_is_rebuilt_with_its_segment(
    log: Log, open_log: OpenLog, damage: bytes | None
) -> None:
    close_cleanly(log)
    path = Path(log.directory) / f"{0:020d}.txnindex"
    whole = path.read_bytes()
    if damage is None:
        path.with_suffix(".index").unlink()
        path.unlink()
        path.with_suffix(".timeindex").write_bytes(b"")
    else:
        path.write_bytes(whole[: len(damage)] if len(damage) == 1 else damage)
    again = open_log(clean=True, recovery_point=8)
    assert again.report.rebuilt == [0]
    assert entries(again) == EXPECTED
    assert path.read_bytes() == whole


def test_an_index_of_a_cut_tail_forgets_what_was_aborted_there(log: Log, open_log: OpenLog) -> None:
    log.close()
    path = Path(log.directory) / f"{6:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    again = open_log()
    assert again.end_offset == 7
    assert entries(again) == [EXPECTED[0], [], []]
    assert index_names(again) == [f"{0:020d}.txnindex"]
    assert again.producers.first_undecided_offset == 0


def test_a_truncation_opens_transactions_again(log: Log) -> None:
    end(log, 8)
    assert len(entries(log)[2]) == 2
    log.truncate_to(8)
    assert entries(log) == EXPECTED
    assert log.producers.first_undecided_offset == 6
    log.truncate_to(7)
    assert entries(log) == [EXPECTED[0], [], []]
    assert log.producers.first_undecided_offset == 0
    log.truncate_to(2)
    assert entries(log) == [[]]
    end(log, 7)
    assert entries(log) == [[AbortedTransaction(7, 0, 2, 1)]]


def test_an_index_goes_with_its_segment(log: Log) -> None:
    removal = log.advance_start_offset(4)
    assert removal is not None
    assert f"{log.directory}/{0:020d}.txnindex.deleted" in removal.paths
    removal.run()
    assert index_names(log) == [f"{6:020d}.txnindex"]
    assert log.aborted_transactions(4, 8) == [(7, 0)]


def test_an_index_moves_along_to_another_directory(log: Log, disk: OsDisk, tmp_path: Path) -> None:
    target = LogDirectory(disk, str(tmp_path / "other"), StillClock())
    future = FutureLog(disk, log, target.path, bytes(16))
    future.create()
    future.copy(future.plan())
    end(log, 8)
    moved = target.adopt(future.finish(), LogOptions())
    assert entries(moved) == [*EXPECTED[:2], [*EXPECTED[2], AbortedTransaction(8, 6, 8, 9)]]
    assert moved.producers.first_undecided_offset is None
    target.release()


def test_a_flush_brings_the_index_to_the_device(log: Log) -> None:
    flush = log.prepare_flush()
    assert flush is not None
    assert f"{log.directory}/{6:020d}.txnindex" in flush._paths
    assert f"{log.directory}/{3:020d}.txnindex" not in flush._paths


def test_a_follower_notes_the_same(log: Log, disk: OsDisk, tmp_path: Path) -> None:
    follower = Log.open(disk, str(tmp_path / "other" / "orders-3"), LogOptions(), StillClock())
    for segment in log.segments:
        follower.append_as_follower(memoryview(segment.open_file().read_at(0, segment.size_bytes)))
    assert list(chain(*entries(follower))) == list(chain(*EXPECTED))
    assert follower.producers.snapshot() == log.producers.snapshot()


def test_a_snapshot_keeps_the_order_of_open_transactions(open_log: OpenLog) -> None:
    log = open_log()
    for producer_id in (9, 3, 7, 5):
        put(log, producer_id)
    close_cleanly(log)
    log = open_log(clean=True, recovery_point=4)
    for producer_id, undecided in ((3, 0), (9, 2), (5, 2), (7, None)):
        end(log, producer_id)
        assert log.producers.first_undecided_offset == undecided


def test_many_aborts_are_narrowed_down_to_the_slice(open_log: OpenLog) -> None:
    log = open_log(index_interval_bytes=200)
    for number in range(400):
        put(log, 7, sequence=number)
        end(log, 7)
    found = log.read(0, 1000, end_offset=log.end_offset)
    few = log.aborted_in(found, 0, end_offset=log.end_offset)
    assert 6 <= len(few) < 15
    found = log.read(780, 1 << 20, end_offset=log.end_offset)
    assert [first for _, first in log.aborted_in(found, 780, end_offset=800)] == list(range(780, 800, 2))
    log.roll()
    put(log, 7, sequence=400)
    found = log.read(600, 1 << 20, end_offset=800)
    assert [first for _, first in log.aborted_in(found, 600, end_offset=800)] == list(range(600, 800, 2))
