"""The segment files that the bench puts into the servers' directories."""

from pathlib import Path

from bench.log_files import BATCH_RECORDS, put_into, write_segments
from bench.measure import Row
from penstock.records.batch import ATTRIBUTES_AT, iterate_headers
from penstock.records.crc import crc32c
from penstock.records.walk import iterate_records
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions


def test_every_batch_is_sound_and_its_keys_are_of_the_asked_number(tmp_path: Path) -> None:
    files = write_segments(tmp_path / "files", total_bytes=300_000, distinct_keys=10, segment_bytes=100_000)
    keys, next_offset = set(), 0
    for path in files.paths:
        data = path.read_bytes()
        assert int(path.stem) == next_offset
        for position, header in iterate_headers(data):
            batch = data[position : position + header.size_bytes]
            assert header.base_offset == next_offset
            assert header.crc == crc32c(memoryview(batch)[ATTRIBUTES_AT:])
            keys |= {record.key for record in iterate_records(batch)}
            next_offset = header.last_offset + 1
    assert next_offset == files.end_offset == files.active_base_offset + BATCH_RECORDS
    assert keys == {b"%016d" % number for number in range(10)}


def test_a_log_opens_on_the_segments_that_were_put_in(tmp_path: Path) -> None:
    files = write_segments(tmp_path / "files", total_bytes=300_000, distinct_keys=10, segment_bytes=100_000)
    partition = tmp_path / "data" / "topic-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(b"old")
    checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n2\ntopic 0 7\nother 0 9\n")
    put_into(partition, files)
    log = Log.open(OsDisk(), str(partition), LogOptions(), SystemClock())
    assert (log.end_offset, len(log.segments)) == (files.end_offset, len(files.paths))
    assert checkpoint.read_text() == "0\n1\nother 0 9\n"
    log.close()


def test_a_row_may_bound_penstocks_own_value() -> None:
    row = Row("kib", "memory per partition", "KiB", "lower", 20, bounds="value")
    assert [row.is_met(19.0), row.is_met(21.0), row.is_met(None)] == [True, False, None]
