import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.records.batch import DELETE_HORIZON_BIT, read_header
from penstock.records.build import sign
from penstock.records.compression import CODEC_NAMES
from penstock.records.walk import finish
from penstock.runtime.files import OsDisk
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.source import CorruptSegment
from penstock.storage.log import Log
from tests.unit.storage.batches import NOW_MS, close_cleanly
from tests.unit.storage.compaction.cleaning import (
    DELETE_RETENTION_MS,
    batches,
    clean,
    put,
    put_marker,
    records,
    run_cleaning,
    shown,
    swap_in,
    task_for,
)

OpenLog = Callable[..., Log]


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(compacted=True)


def test_the_last_value_of_each_key_stays_with_its_offset(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    put(log, ("c", "1"), ("b", "2"))
    log.roll()
    result = clean(disk, log)
    assert shown(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]
    assert (result.records_read, result.records_kept, result.next_dirty_offset) == (5, 3, 5)
    assert log.end_offset == 5


def test_the_active_segment_is_not_touched(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"))
    log.roll()
    put(log, ("a", "2"), ("a", "3"))
    clean(disk, log)
    assert shown(log) == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]


def test_records_of_the_clean_part_go_when_the_dirty_part_has_newer_ones(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"))
    log.roll()
    first = clean(disk, log)
    put(log, ("b", "2"))
    log.roll()
    clean(disk, log, first_dirty_offset=first.next_dirty_offset)
    assert shown(log) == [(0, "a", "1"), (2, "b", "2")]


def test_several_small_segments_become_one(disk: OsDisk, log: Log) -> None:
    for number in range(5):
        put(log, ("a", str(number)), (f"k{number}", "x"))
        log.roll()
    clean(disk, log)
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert shown(log) == [
        (1, "k0", "x"),
        (3, "k1", "x"),
        (5, "k2", "x"),
        (7, "k3", "x"),
        (8, "a", "4"),
        (9, "k4", "x"),
    ]


def test_segments_are_merged_only_up_to_segment_bytes(disk: OsDisk, open_log: OpenLog) -> None:
    log = open_log(compacted=True, segment_bytes=300)
    for number in range(4):
        put(log, (f"k{number}", "x" * 60))
        log.roll()
    clean(disk, log)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
def test_batches_of_every_codec_are_filtered_and_keep_it(disk: OsDisk, log: Log, codec: int) -> None:
    put(log, ("a", "1"), ("b", "1"), codec=codec)
    put(log, ("a", "2"), ("c", None), codec=codec)
    log.roll()
    clean(disk, log)
    assert shown(log) == [(1, "b", "1"), (2, "a", "2"), (3, "c", None)]
    assert [header.codec for header, _ in batches(log)] == [codec, codec]


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("c", "1"), codec=4)
    log.roll()
    before = [batch for _, batch in batches(log)]
    clean(disk, log)
    assert [batch for _, batch in batches(log)] == before


def test_timestamps_and_headers_of_kept_records_stay(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"), ("a", "2"), timestamp=NOW_MS - 50_000)
    log.roll()
    clean(disk, log)
    assert [record.timestamp for record in records(log)] == [NOW_MS - 49_999, NOW_MS - 49_998]
    assert [header.max_timestamp for header, _ in batches(log)] == [NOW_MS - 49_998]


def test_every_batch_of_a_cleaned_log_has_a_right_crc(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", None), ("a", "2"))
    put(log, ("a", "3"), ("d", None), codec=3)
    log.roll()
    clean(disk, log)
    for _, batch in batches(log):
        signed = bytearray(batch)
        sign(memoryview(signed))
        assert bytes(signed) == batch


def test_a_record_without_a_key_goes(disk: OsDisk, log: Log) -> None:
    put(log, (None, "x"), ("a", "1"))
    log.roll()
    assert clean(disk, log).null_keys == 1
    assert shown(log) == [(1, "a", "1")]


# --- tombstones


def test_a_tombstone_gets_a_delete_horizon_and_keeps_its_timestamp(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", None), ("b", "1"))
    log.roll()
    clean(disk, log)
    assert shown(log) == [(1, "a", None), (2, "b", "1")]
    header, _ = batches(log)[-1]
    assert header.attributes & DELETE_HORIZON_BIT
    assert header.base_timestamp == NOW_MS + DELETE_RETENTION_MS
    assert [record.timestamp for record in records(log)] == [NOW_MS, NOW_MS + 1]


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
def test_a_tombstone_goes_when_its_horizon_has_passed_and_not_before(
    disk: OsDisk, log: Log, codec: int
) -> None:
    put(log, ("a", None), ("b", "1"), codec=codec)
    log.roll()
    put(log, ("z", "1"))
    log.roll()
    clean(disk, log)
    clean(disk, log, first_dirty_offset=3, now_ms=NOW_MS + DELETE_RETENTION_MS - 1)
    assert shown(log) == [(0, "a", None), (1, "b", "1"), (2, "z", "1")]
    clean(disk, log, first_dirty_offset=3, now_ms=NOW_MS + DELETE_RETENTION_MS)
    assert shown(log) == [(1, "b", "1"), (2, "z", "1")]
    assert records(log)[0].timestamp == NOW_MS + 1


def test_a_horizon_once_set_is_not_moved_by_later_cleanings(disk: OsDisk, log: Log) -> None:
    put(log, ("a", None), ("b", "1"))
    log.roll()
    clean(disk, log)
    clean(disk, log, now_ms=NOW_MS + 500)
    assert [header.base_timestamp for header, _ in batches(log)] == [NOW_MS + DELETE_RETENTION_MS]


# --- batches that must stay although nothing is left in them


def test_the_last_batch_of_an_active_producer_stays_empty(disk: OsDisk, open_log: OpenLog) -> None:
    log = open_log(compacted=True)
    put(log, ("a", "1"), producer_id=7, base_sequence=0)
    put(log, ("a", "2"), ("a", "3"), producer_id=7, base_sequence=1)
    put(log, ("a", "4"))
    log.roll()
    clean(disk, log)
    assert [(header.base_offset, header.records_count) for header, _ in batches(log)] == [(1, 0), (3, 1)]
    empty = batches(log)[0][0]
    assert (empty.producer_id, empty.base_sequence, empty.last_sequence, empty.last_offset) == (7, 1, 2, 2)
    close_cleanly(log)
    again = open_log(compacted=True)
    batch = batches(again)[0][0]._replace(base_sequence=3, last_offset_delta=0)
    assert again.producers.check(batch) is None  # sequence 3 is the next one


def test_a_batch_of_a_forgotten_producer_goes(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), producer_id=7)
    put(log, ("a", "2"))
    log.roll()
    log.producers.clear()
    clean(disk, log)
    assert [header.base_offset for header, _ in batches(log)] == [1]


def test_the_last_batch_of_the_cleaned_part_stays_empty(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"))
    put(log, (None, "x"))
    log.roll()
    clean(disk, log)
    assert [(header.base_offset, header.records_count) for header, _ in batches(log)] == [(0, 1), (1, 0)]


def test_a_segment_that_loses_all_becomes_empty_and_reading_goes_on_behind_it(
    disk: OsDisk, open_log: OpenLog
) -> None:
    log = open_log(compacted=True, segment_bytes=250)
    put(log, ("a", "1" * 100))
    log.roll()
    put(log, ("a", "2" * 100))
    log.roll()
    put(log, ("b", "2" * 100))
    log.roll()
    clean(disk, log)
    assert [record.offset for record in records(log)] == [1, 2]
    assert log.read(0, 1000).base_offset == 1


# --- transactions


def test_a_commit_marker_stays_as_long_as_a_record_of_its_transaction_does(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=True)
    log.roll()
    clean(disk, log)
    clean(disk, log, now_ms=NOW_MS + 10 * DELETE_RETENTION_MS)
    assert [header.is_control for header, _ in batches(log)] == [False, True]
    assert not batches(log)[1][0].attributes & DELETE_HORIZON_BIT


def test_a_marker_without_records_gets_a_horizon_and_goes_after_it(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=True)
    put(log, ("a", "2"))
    log.roll()
    log.producers.clear()
    clean(disk, log)
    clean(disk, log)  # the first one still saw the batch that it removed
    assert [header.base_offset for header, _ in batches(log)] == [1, 2]
    assert batches(log)[0][0].attributes & DELETE_HORIZON_BIT
    clean(disk, log, now_ms=NOW_MS + DELETE_RETENTION_MS)
    assert [header.base_offset for header, _ in batches(log)] == [2]


def test_records_of_an_aborted_transaction_go_and_do_not_supersede_others(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "good"))
    put(log, ("a", "aborted"), producer_id=7, transactional=True)
    put_marker(log, 7, commit=False)
    log.roll()
    entry = b"".join(number.to_bytes(8, "big") for number in (7, 1, 2, 3))
    Path(log.directory, f"{0:020d}.txnindex").write_bytes(bytes(2) + entry)
    clean(disk, log)
    assert shown(log) == [(0, "a", "good")]
    assert Path(log.directory, f"{0:020d}.txnindex").read_bytes() == bytes(2) + entry


# --- bounds


def test_a_key_takes_one_place_in_the_map_however_often_it_comes(disk: OsDisk, log: Log) -> None:
    for number in range(20):
        put(log, (f"k{number}", "1"), (f"k{number}", "2"))
    put(log, *((f"k{number}", "3") for number in range(20)))
    log.roll()
    result = clean(disk, log, map_bytes=24 * 24)  # 24 slots, 21 of them usable
    assert (result.next_dirty_offset, result.map_entries) == (60, 20)
    assert [value for _, _, value in shown(log)] == ["3"] * 20


def test_a_map_too_small_for_all_keys_never_drops_a_last_value(disk: OsDisk, log: Log) -> None:
    for _ in range(3):
        for number in range(30):
            put(log, (f"k{number}", "x"))
    log.roll()
    offset = rounds = 0
    while offset < log.end_offset:
        offset = clean(disk, log, first_dirty_offset=offset, map_bytes=24 * 12).next_dirty_offset
        rounds += 1
    assert rounds > 3
    assert [key for _, key, _ in shown(log)] == [f"k{number}" for number in range(30)]


def test_batches_larger_than_the_buffer_are_read_whole(disk: OsDisk, log: Log) -> None:
    for value in ("1", "2"):
        put(log, *((f"k{number}", value * 50) for number in range(200)))
    put(log, *((f"k{number}", None) for number in range(5000)))
    log.roll()
    run_cleaning(disk, log, task_for(log, buffer_bytes=100))
    assert [key for _, key, _ in shown(log)] == [f"k{number}" for number in range(5000)]


# --- files


def test_the_indexes_of_a_cleaned_segment_find_every_offset_and_time(disk: OsDisk, open_log: OpenLog) -> None:
    log = open_log(compacted=True, index_interval_bytes=200)
    for number in range(100):
        put(log, (f"k{number % 60}", "x" * 30), timestamp=NOW_MS + number * 10)
    log.roll()
    clean(disk, log)
    segment = log.segments[0]
    assert segment.offset_index.entries_count > 5
    assert segment.time_index.entries_count > 5
    assert segment.max_timestamp == NOW_MS + 990
    for offset in range(100):
        expected = max(offset, 40)
        assert log.read(offset, 100).base_offset == expected
        found = finish(log.offset_for_timestamp(NOW_MS + offset * 10))
        assert found is not None
        assert found.offset == expected


def test_the_indexes_equal_those_that_recovery_would_build(disk: OsDisk, open_log: OpenLog) -> None:
    log = open_log(compacted=True, index_interval_bytes=300)
    for number in range(80):
        put(
            log,
            (f"k{number % 50}", "x" * 30),
            (f"m{number}", None),
            timestamp=NOW_MS + number * 10,
            codec=number % 5,
        )
    log.roll()
    clean(disk, log)
    segment = log.segments[0]
    cleaned = list(segment.offset_index.entries()), list(segment.time_index.entries())
    close_cleanly(log)
    for name in os.listdir(log.directory):
        if name.endswith(("index",)):
            os.unlink(os.path.join(log.directory, name))
    rebuilt = open_log(compacted=True, index_interval_bytes=300).segments[0]
    assert (list(rebuilt.offset_index.entries()), list(rebuilt.time_index.entries())) == cleaned


def test_a_reader_inside_an_old_segment_reads_on(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", "2"))
    log.roll()
    part = log.read(0, 1 << 20)
    before = part.file.read_at(part.position, part.size_bytes)
    clean(disk, log)
    assert part.file.read_at(part.position, part.size_bytes) == before


@pytest.mark.parametrize("at", [8, 16, 30, 66])
def test_a_damaged_batch_stops_the_cleaning_and_changes_nothing(disk: OsDisk, log: Log, at: int) -> None:
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", "2"))
    log.roll()
    path = Path(log.directory, f"{0:020d}.log")
    data = bytearray(path.read_bytes())
    data[read_header(data).size_bytes + at] ^= 0x41
    path.write_bytes(data)
    with pytest.raises(CorruptSegment, match=r"000\.log at byte"):
        clean(disk, log)
    assert path.read_bytes() == data


def test_a_cleaned_log_opens_again_after_a_clean_close_and_after_a_crash(
    disk: OsDisk, open_log: OpenLog
) -> None:
    log = open_log(compacted=True)
    for number in range(50):
        put(log, (f"k{number % 7}", str(number)))
        if number % 10 == 9:
            log.roll()
    clean(disk, log)
    expected = shown(log)
    close_cleanly(log)
    again = open_log(compacted=True, clean=True, recovery_point=50)
    assert shown(again) == expected
    again.close()
    crashed = open_log(compacted=True)
    assert shown(crashed) == expected
    assert crashed.end_offset == 50
    assert crashed.report.truncated_bytes == 0


def test_a_cleaning_of_a_log_that_lost_segments_meanwhile_is_dropped(disk: OsDisk, log: Log) -> None:
    put(log, ("a", "1"))
    log.roll()
    put(log, ("a", "2"))
    log.roll()
    reported: list[object] = []
    Cleaning(disk, task_for(log), report=reported.append, throttle=lambda size: None).run()
    log.advance_start_offset(1)
    with pytest.raises(AssertionError):
        swap_in(disk, log, next(each for each in reported if not isinstance(each, float)))  # type: ignore[arg-type]
    assert not [name for name in os.listdir(log.directory) if name.endswith((".cleaned", ".swap"))]
    assert shown(log) == [(1, "a", "2")]
