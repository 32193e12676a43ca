import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.records.walk import finish
from penstock.runtime import files
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
    stored_bytes,
)

OpenLog = Callable[..., Log]
DAY_MS = 24 * 3600 * 1000


def test_an_append_writes_offset_and_leader_epoch_into_the_batch(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 5)
    batch, header = make_batch(3)
    assert log.append(batch, header, 9) == 5
    stored = read_header(batch)
    assert (stored.base_offset, stored.partition_leader_epoch) == (5, 9)
    assert stored_bytes(log).endswith(bytes(batch))
    assert log.end_offset == 8


def test_a_new_log_has_kafkas_files(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    append(log)
    close_cleanly(log)
    assert sorted(path.name for path in (tmp_path / "orders-3").iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000001.snapshot",
        "leader-epoch-checkpoint",
    ]


def test_a_segment_rolls_before_it_would_pass_segment_bytes(open_log: OpenLog) -> None:
    size = len(make_batch(1)[0])
    log = open_log(segment_bytes=3 * size)
    for _ in range(7):
        append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]


def test_a_batch_larger_than_a_segment_is_refused(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=100)
    with pytest.raises(ApiError) as refusal:
        append(log, value_bytes=200)
    assert refusal.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.end_offset == 0


def test_a_segment_rolls_when_its_batches_span_segment_ms(open_log: OpenLog) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 1000)
    assert len(log.segments) == 1
    append(log, timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_segment_ms_still_counts_from_the_first_batch_after_a_reopening(open_log: OpenLog) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 900)
    close_cleanly(log)
    log = open_log(segment_ms=1000, clean=True)
    append(log, timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_batches_without_timestamps_roll_by_the_clock(open_log: OpenLog, clock: StillClock) -> None:
    log = open_log(segment_ms=1000)
    append(log, timestamp=-1)
    clock.ms += 1001
    append(log, timestamp=-1)
    assert len(log.segments) == 2


def test_jitter_only_makes_a_segment_roll_earlier(open_log: OpenLog) -> None:
    log = open_log(segment_ms=1000, segment_jitter_ms=500)
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 500)
    assert len(log.segments) == 1
    append(log, timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_a_full_index_rolls_the_segment(open_log: OpenLog) -> None:
    log = open_log(segment_index_bytes=48, index_interval_bytes=0)
    for at in range(10):
        append(log, timestamp=NOW_MS + at)
    assert len(log.segments) > 2
    assert all(segment.time_index.size_bytes <= 48 for segment in log.segments)


def test_options_may_change_while_the_log_is_open(open_log: OpenLog) -> None:
    log = open_log()
    append(log)
    log.options = LogOptions(segment_bytes=log.size_bytes)
    append(log)
    assert len(log.segments) == 2


def test_a_caught_up_reader_gets_exactly_what_came_since(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 10)
    assert log.read(10, 1000).size_bytes == 0
    append(log, 2)
    append(log, 2)
    found = log.read(10, 1000)
    assert read_header(found.file.read_at(found.position, 61)).base_offset == found.base_offset == 10
    assert found.size_bytes == log.size_bytes - found.position


def test_the_first_batch_is_given_whole_even_above_max_bytes(open_log: OpenLog) -> None:
    log = open_log()
    append(log, value_bytes=500)
    append(log, value_bytes=500)
    whole = log.size_bytes // 2
    assert log.read(0, 10).size_bytes == whole
    assert log.read(1, 10).size_bytes == whole


def test_a_part_of_one_batch_alone_is_never_given(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=1000)
    for _ in range(3):
        append(log, value_bytes=500)
    whole = log.size_bytes // 3
    assert [log.read(offset, whole - 1, at_least_one=False).size_bytes for offset in (0, 1, 2)] == [0, 0, 0]
    assert log.read(0, whole, at_least_one=False).size_bytes == whole


def test_a_roll_that_fails_leaves_no_segment_that_would_end_the_log(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(segment_bytes=2000)
    append(log, value_bytes=1000)

    def full(self: OsDisk, path: str, data: bytes, *, sync: bool = False) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(OsDisk, "write", full)
        with pytest.raises(OSError, match="No space"):
            append(log, value_bytes=1500)
    append(log, value_bytes=300)
    assert open_log(segment_bytes=2000).end_offset == log.end_offset == 2


@pytest.mark.parametrize("offset", [4, 11, -1])
def test_an_offset_outside_of_the_log_is_refused(open_log: OpenLog, offset: int) -> None:
    log = open_log(start_offset=5)
    append(log, 5)
    with pytest.raises(ApiError) as refusal:
        log.read(offset, 1000)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_at_or_above_the_high_watermark_is_read(open_log: OpenLog) -> None:
    log = open_log()
    for _ in range(4):
        append(log, 2)
    size = log.size_bytes // 4
    assert log.read(0, 10_000, end_offset=4).size_bytes == 2 * size
    assert log.read(4, 10_000, end_offset=4).size_bytes == 0
    assert log.read(6, 10_000, end_offset=4).size_bytes == 0
    assert log.read(4, 10_000, end_offset=6).size_bytes == size


def test_a_slice_stays_readable_after_its_segment_is_gone(open_log: OpenLog) -> None:
    log = open_log()
    append(log, value_bytes=100)
    log.roll()
    append(log)
    found = log.read(0, 1000)
    before = found.file.read_at(found.position, found.size_bytes)
    removal = log.advance_start_offset(1)
    assert removal is not None
    removal.run()
    log.close()
    assert found.file.read_at(found.position, found.size_bytes) == before


def test_a_closed_segment_is_found_through_its_index(open_log: OpenLog) -> None:
    log = open_log(index_interval_bytes=200)
    for _ in range(700):
        append(log, 3, value_bytes=20)
    log.roll()
    assert log.segments[0].offset_index.entries_count > 256
    for offset in range(0, 2100, 7):
        assert log.read(offset, 1).base_offset == offset - offset % 3


def test_offsets_are_found_by_timestamp(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=600, index_interval_bytes=100)
    for at in range(20):
        append(log, 2, timestamp=NOW_MS + 10 * at, leader_epoch=at // 10)
    assert len(log.segments) > 2
    assert finish(log.offset_for_timestamp(NOW_MS - 1)) == (NOW_MS, 0, 0)
    assert finish(log.offset_for_timestamp(NOW_MS + 10)) == (NOW_MS + 10, 2, 0)
    assert finish(log.offset_for_timestamp(NOW_MS + 101)) == (NOW_MS + 110, 22, 1)
    assert finish(log.offset_for_timestamp(NOW_MS + 191)) is None


def test_a_timestamp_is_found_inside_a_compressed_batch(open_log: OpenLog) -> None:
    log = open_log()
    batch = build_batch([(None, b"x", (), NOW_MS + at) for at in range(100)], codec=4)
    log.append(memoryview(batch), read_header(batch), 0)
    assert finish(log.offset_for_timestamp(NOW_MS + 42)) == (NOW_MS + 42, 42, 0)


def test_the_first_record_with_the_largest_timestamp_is_found(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=200)
    assert finish(log.max_timestamp_offset()) is None
    for timestamp in (NOW_MS, NOW_MS + 50, NOW_MS + 50, NOW_MS + 3):
        append(log, timestamp=timestamp)
    assert finish(log.max_timestamp_offset()) == (NOW_MS + 50, 1, 0)


def test_records_below_the_start_offset_are_not_found_by_timestamp(open_log: OpenLog) -> None:
    log = open_log()
    batch = build_batch([(None, b"x", (), NOW_MS + at) for at in range(10)])
    log.append(memoryview(batch), read_header(batch), 0)
    log.advance_start_offset(4)
    assert finish(log.offset_for_timestamp(NOW_MS)) == (NOW_MS + 4, 4, 0)


def test_the_end_of_an_epoch_is_where_the_next_began(open_log: OpenLog) -> None:
    log = open_log()
    for epoch in (0, 0, 2, 5):
        append(log, 10, leader_epoch=epoch)
    assert log.epoch_end_offset(0) == (0, 20)
    assert log.epoch_end_offset(3) == (2, 30)
    assert log.epoch_end_offset(5) == (5, 40)
    assert log.epoch_end_offset(6) == (-1, -1)


def test_truncation_cuts_before_the_batch_that_contains_the_offset(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=300)
    for epoch in range(6):
        append(log, 3, leader_epoch=epoch)
    log.truncate_to(7)
    assert log.end_offset == 6
    assert base_offsets(log) == [0, 3]
    assert log.leader_epochs.entries == [(0, 0), (1, 3)]
    assert append(log) == 6


def test_truncation_below_the_first_segment_starts_afresh(open_log: OpenLog) -> None:
    log = open_log(start_offset=100)
    append(log, 5)
    log.truncate_to(50)
    assert (log.start_offset, log.end_offset) == (50, 50)
    assert append(log) == 50


def test_a_truncated_log_forgets_the_producers_it_cut_off(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 2, producer_id=1)
    log.roll()
    append(log, 2, producer_id=1, base_sequence=2)
    append(log, 2, producer_id=2)
    log.truncate_to(4)
    assert 2 not in log.producers
    assert log.producers.check(make_batch(1, producer_id=1, base_sequence=4)[1]) is None
    log.truncate_to(2)
    assert log.producers.check(make_batch(1, producer_id=1, base_sequence=2)[1]) is None


def test_a_flush_says_nothing_of_what_was_cut_meanwhile_and_written_anew(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 5)
    flush = log.prepare_flush()
    assert flush is not None
    log.truncate_to(0)
    append(log, 5)
    flush.run()
    log.flushed(flush)
    assert log.recovery_point == 0


def test_truncation_leaves_nothing_of_the_cut_segments_on_disk(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    for _ in range(3):
        append(log, 2)
        log.roll()
    log.truncate_to(1)
    left = {path.name.split(".")[0] for path in (tmp_path / "orders-3").iterdir() if path.name[0] == "0"}
    assert left == {"00000000000000000000"}


def test_the_start_offset_takes_whole_segments_with_it(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    for _ in range(3):
        append(log, 2)
        log.roll()
    removal = log.advance_start_offset(3)
    assert [segment.base_offset for segment in log.segments] == [2, 4, 6]
    assert removal is not None
    assert all(path.endswith(".deleted") and os.path.exists(path) for path in removal.paths)
    removal.run()
    assert not list((tmp_path / "orders-3").glob("*.deleted"))
    assert log.advance_start_offset(2) is None
    assert log.start_offset == 3


def test_the_start_offset_cannot_pass_the_end(open_log: OpenLog) -> None:
    with pytest.raises(ApiError) as refusal:
        open_log().advance_start_offset(1)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_segments_older_than_retention_ms_go_and_so_does_the_active_one(open_log: OpenLog) -> None:
    log = open_log(retention_ms=DAY_MS)
    for age in (3, 2, 0):
        append(log, timestamp=NOW_MS - age * DAY_MS)
        log.roll()
    assert log.apply_retention(now_ms=NOW_MS, end_offset=3) is not None
    assert (log.start_offset, log.end_offset) == (2, 3)
    log.apply_retention(now_ms=NOW_MS + 9 * DAY_MS, end_offset=3)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 3, 0)
    assert append(log) == 3


def test_retention_bytes_keeps_at_least_as_much_as_it_says(open_log: OpenLog) -> None:
    size = len(make_batch(1)[0])
    log = open_log(segment_bytes=2 * size, retention_bytes=5 * size)
    for _ in range(10):
        append(log)
    log.apply_retention(now_ms=NOW_MS, end_offset=10)
    assert log.start_offset == 4


def test_retention_never_passes_the_high_watermark(open_log: OpenLog) -> None:
    log = open_log(retention_ms=0)
    for _ in range(3):
        append(log, timestamp=NOW_MS - DAY_MS)
        log.roll()
    log.apply_retention(now_ms=NOW_MS, end_offset=2)
    assert log.start_offset == 2


def test_a_compacted_topic_without_delete_keeps_everything(open_log: OpenLog) -> None:
    log = open_log(retention_ms=0, delete_enabled=False)
    append(log, timestamp=0)
    assert log.apply_retention(now_ms=NOW_MS, end_offset=1) is None


def test_a_flush_moves_the_recovery_point_to_where_it_began(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 3)
    flush = log.prepare_flush()
    append(log, 3)
    assert flush is not None
    flush.run()
    log.flushed(flush)
    assert log.recovery_point == 3
    log.flush()
    assert log.recovery_point == 6
    assert log.prepare_flush() is None


def test_closed_segments_can_be_flushed_without_the_active_one(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 3)
    assert log.prepare_flush(include_active=False) is None
    log.roll()
    append(log, 3)
    flush = log.prepare_flush(include_active=False)
    assert flush is not None
    flush.run()
    assert flush.end_offset == 3


def test_a_follower_keeps_the_leaders_offsets_and_epochs(open_log: OpenLog) -> None:
    log = open_log()
    first, _ = make_batch(3, leader_epoch=4)
    second, _ = make_batch(2, base_offset=3, leader_epoch=6, producer_id=8, base_sequence=0)
    assert log.append_as_follower(memoryview(bytes(first) + bytes(second) + bytes(first)[:20])) == 5
    assert stored_bytes(log) == bytes(first) + bytes(second)
    assert log.leader_epochs.entries == [(4, 0), (6, 3)]
    assert 8 in log.producers


def test_a_follower_refuses_offsets_it_has_and_bytes_it_cannot_believe(open_log: OpenLog) -> None:
    log = open_log()
    append(log, 3)
    for batch, code in (
        (make_batch(3, base_offset=1)[0], ErrorCode.OFFSET_OUT_OF_RANGE),
        (make_batch(3, base_offset=3)[0], ErrorCode.CORRUPT_MESSAGE),
    ):
        if code == ErrorCode.CORRUPT_MESSAGE:
            batch[-1] ^= 1
        with pytest.raises(ApiError) as refusal:
            log.append_as_follower(batch)
        assert refusal.value.code == code
    assert log.end_offset == 3


def test_a_deleted_log_is_out_of_sight_at_once(open_log: OpenLog, tmp_path: Path) -> None:
    log = open_log()
    append(log)
    moved = log.delete(bytes(16))
    assert [str(path) for path in tmp_path.iterdir()] == [moved]
    assert moved == f"{tmp_path}/orders-3.{'0' * 32}-delete"


def test_an_append_to_a_full_disk_leaves_the_log_as_it_was(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    append(log, producer_id=1)
    before = stored_bytes(log)

    def fail(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "_write", fail)
        with pytest.raises(OSError, match="No space"):
            append(log, producer_id=1, base_sequence=1)
    assert (log.end_offset, stored_bytes(log)) == (1, before)
    assert log.producers.check(make_batch(1, producer_id=1, base_sequence=1)[1]) is None
    assert append(log, producer_id=1, base_sequence=1) == 1


def test_segments_without_timestamps_are_kept_for_retention_ms_since_they_were_opened(
    open_log: OpenLog,
) -> None:
    log = open_log(retention_ms=DAY_MS)
    append(log, timestamp=-1)
    assert log.apply_retention(now_ms=NOW_MS + DAY_MS, end_offset=1) is None
    assert log.apply_retention(now_ms=NOW_MS + DAY_MS + 1, end_offset=1) is not None


def test_an_idle_log_is_small(disk: OsDisk, clock: StillClock, tmp_path: Path) -> None:
    options = LogOptions()
    Log.open(disk, str(tmp_path / "warm-0"), options, clock)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    logs = [Log.open(disk, str(tmp_path / f"orders-{number}"), options, clock) for number in range(50)]
    for log in logs:
        append(log, 10)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used / len(logs) < 8 * 1024
