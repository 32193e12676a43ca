"""Opening what a crash, a clean stop or a careless hand left behind.

Crashes at any byte: test_log_properties.py.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.records.walk import finish
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import (
    NOW_MS,
    StillClock,
    append,
    base_offsets,
    close_cleanly,
    make_batch,
)

OpenLog = Callable[..., Log]


class CountingDisk(OsDisk):
    """A real disk that tells how many .log files were opened and sees their names."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str, *, create: bool = False):  # type: ignore[no-untyped-def]
        self.opened.append(os.path.basename(path))
        return super().open(path, create=create)


def files(tmp_path: Path, pattern: str) -> list[Path]:
    return sorted((tmp_path / "orders-3").glob(pattern))


def filled(open_log: OpenLog) -> Log:
    log = open_log(segment_bytes=1000, index_interval_bytes=100)
    for at in range(30):
        append(
            log,
            3,
            value_bytes=20,
            timestamp=NOW_MS + at,
            leader_epoch=at // 10,
            producer_id=5,
            base_sequence=3 * at,
        )
    assert len(log.segments) > 3
    return log


def test_a_clean_open_touches_only_the_active_segment(
    open_log: OpenLog, clock: StillClock, tmp_path: Path
) -> None:
    close_cleanly(filled(open_log))
    disk = CountingDisk()
    log = Log.open(disk, str(tmp_path / "orders-3"), LogOptions(), clock, clean=True)
    last = files(tmp_path, "*.log")[-1].name
    assert {name for name in disk.opened if name.endswith(".log")} == {last}
    assert log.end_offset == 90
    assert log.report.lines == []


def test_a_clean_open_knows_what_the_log_knew(open_log: OpenLog) -> None:
    log = filled(open_log)
    epochs = log.leader_epochs.entries
    close_cleanly(log)
    log = open_log(clean=True, recovery_point=90)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (0, 90, 90)
    assert log.leader_epochs.entries == epochs
    assert log.producers.check(make_batch(1, producer_id=5, base_sequence=90)[1]) is None
    assert finish(log.max_timestamp_offset()) == (NOW_MS + 29, 87, 2)
    assert base_offsets(log) == list(range(0, 90, 3))


def test_an_unclean_open_checks_only_from_the_recovery_point(open_log: OpenLog, tmp_path: Path) -> None:
    log = filled(open_log)
    log.flush()
    segments = len(log.segments)
    log.close()
    assert open_log(recovery_point=90, segment_bytes=1000).report.recovered_segments == 1
    assert open_log(recovery_point=0, segment_bytes=1000).report.recovered_segments == segments


def test_after_a_crash_producers_are_replayed_from_the_last_snapshot(open_log: OpenLog) -> None:
    log = filled(open_log)
    log.close()
    log = open_log()
    assert log.producers.check(make_batch(3, producer_id=5, base_sequence=87)[1]) == (87, NOW_MS + 29)
    assert log.producers.check(make_batch(3, producer_id=5, base_sequence=90)[1]) is None


def test_snapshots_at_the_base_of_a_segment_are_kept_and_others_are_not(
    open_log: OpenLog, tmp_path: Path
) -> None:
    log = filled(open_log)
    bases = {segment.base_offset for segment in log.segments} - {0}
    close_cleanly(log)
    close_cleanly(open_log(clean=True))
    assert {int(path.stem) for path in files(tmp_path, "*.snapshot")} == bases | {90}
    log = open_log(clean=True)
    append(log)
    close_cleanly(log)
    open_log(clean=True)
    assert {int(path.stem) for path in files(tmp_path, "*.snapshot")} == bases | {91}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "nonsense"])
def test_damaged_snapshots_are_replayed_from_the_log(
    open_log: OpenLog, tmp_path: Path, clean: bool, damage: str
) -> None:
    close_cleanly(filled(open_log))
    for path in files(tmp_path, "*.snapshot"):
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes({"empty": b"", "torn": path.read_bytes()[:-1], "nonsense": bytes(56)}[damage])
    log = open_log(clean=clean)
    assert log.producers.check(make_batch(3, producer_id=5, base_sequence=75)[1]) == (75, NOW_MS + 25)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "past the log"])
def test_damaged_indexes_are_rebuilt_even_after_a_clean_close(
    open_log: OpenLog, tmp_path: Path, suffix: str, damage: str
) -> None:
    close_cleanly(filled(open_log))
    good = {path.name: path.read_bytes() for path in files(tmp_path, f"*.{suffix}")}
    for path in files(tmp_path, f"*.{suffix}"):
        if damage == "missing":
            path.unlink()
        elif damage == "torn":
            path.write_bytes(path.read_bytes()[:-3])
        elif suffix == "index":
            path.write_bytes(path.read_bytes() + b"\x00\x00\x00\x50\x7f\xff\xff\x00")
        else:
            path.write_bytes(b"")
    log = open_log(clean=True, segment_bytes=1000, index_interval_bytes=100)
    assert base_offsets(log) == list(range(0, 90, 3))
    assert log.report.recovered_segments == len(log.segments)
    assert {path.name: path.read_bytes() for path in files(tmp_path, f"*.{suffix}")} == good


def test_recovered_indexes_equal_those_written_at_append(open_log: OpenLog, tmp_path: Path) -> None:
    close_cleanly(filled(open_log))
    good = {path.name: path.read_bytes() for path in files(tmp_path, "*index")}
    open_log(segment_bytes=1000, index_interval_bytes=100)
    assert {path.name: path.read_bytes() for path in files(tmp_path, "*index")} == good


def test_a_lost_epoch_file_is_read_back_from_the_batches(open_log: OpenLog, tmp_path: Path) -> None:
    log = filled(open_log)
    epochs = log.leader_epochs.entries
    close_cleanly(log)
    (tmp_path / "orders-3" / "leader-epoch-checkpoint").unlink()
    assert open_log(clean=True, recovery_point=90).leader_epochs.entries == epochs


def test_epochs_beyond_a_cut_tail_are_forgotten(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    append(log, leader_epoch=1)
    append(log, leader_epoch=2)
    log.close()
    os.truncate(files(tmp_path, "*.log")[0], log.size_bytes - 1)
    assert open_log().leader_epochs.entries == [(1, 0)]


def test_segments_behind_a_damaged_one_are_deleted_and_reported(open_log: OpenLog, tmp_path: Path) -> None:
    filled(open_log).close()
    second = files(tmp_path, "*.log")[1]
    os.truncate(second, second.stat().st_size - 5)
    log = open_log()
    assert len(log.segments) == 2
    assert log.report.truncated_bytes > 0
    assert log.report.removed_segments > 1
    assert any("torn" in line for line in log.report.lines)
    assert files(tmp_path, "*.log")[1:] == [second]


def test_leftovers_of_a_deletion_are_cleared_away(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    append(log)
    log.roll()
    append(log)
    log.advance_start_offset(1)
    log.close()
    (tmp_path / "orders-3" / "00000000000000000099.index").write_bytes(bytes(8))
    log = open_log(start_offset=1)
    assert log.start_offset == 1
    assert {path.stem for path in files(tmp_path, "*index")} == {"00000000000000000001"}
    assert not files(tmp_path, "*.deleted")


def test_a_log_that_ends_below_its_start_offset_starts_there(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 3)
    log.close()
    log = open_log(start_offset=10)
    assert (log.start_offset, log.end_offset) == (10, 10)
    assert append(log) == 10


def test_a_tail_damaged_after_a_clean_close_is_still_noticed(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    append(log, 3)
    append(log, 3)
    close_cleanly(log)
    os.truncate(files(tmp_path, "*.log")[0], log.size_bytes - 7)
    log = open_log(clean=True)
    assert log.end_offset == 3


def test_a_control_batch_ends_the_transaction_when_it_is_replayed(open_log: OpenLog) -> None:
    marker = bytearray.fromhex(
        "000000000000006400000042000000070201cca8d20030000000000000018bcfe568000000018bcfe5680000000000000012670003"
        "ffffffff000000012000000008000000000c00000000000c00"
    )
    log = open_log(start_offset=98)
    batch, header = make_batch(2, producer_id=4711, producer_epoch=3, transactional=True)
    log.append(batch, header, 7)
    assert log.producers.first_undecided_offset == 98
    log.append_as_follower(memoryview(marker))
    assert log.producers.first_undecided_offset is None
    log.close()
    assert open_log(start_offset=98).producers.first_undecided_offset is None
