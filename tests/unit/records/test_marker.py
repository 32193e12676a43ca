import pytest

from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.records.crc import crc32c
from penstock.records.marker import COMMIT, Marker, build_marker, marker_of, read_marker
from penstock.records.walk import iterate_records

KEY = b"\0\0\0\1"
VALUE = b"\0\0\0\0\0\7"


def marker(*, committed: bool = True) -> bytearray:
    return build_marker(
        producer_id=4711,
        producer_epoch=3,
        committed=committed,
        coordinator_epoch=7,
        timestamp_ms=1_700_000_000_000,
    )


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_a_control_batch_with_one_record(committed: bool) -> None:
    batch = marker(committed=committed)
    header = read_header(batch)
    assert (header.is_control, header.is_transactional, header.records_count) == (True, True, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, -1)
    assert header.max_timestamp == header.base_timestamp == 1_700_000_000_000
    assert header.size_bytes == len(batch)
    assert crc32c(batch[21:]) == header.crc
    (record,) = iterate_records(batch)
    assert (record.key, record.value) == (bytes((0, 0, 0, committed)), VALUE)
    assert marker_of(batch, header) == read_marker([record]) == Marker(committed, 7)


def test_a_marker_is_the_same_as_one_built_record_by_record() -> None:
    general = build_batch(
        [(KEY, VALUE, (), 1_700_000_000_000)],
        producer_id=4711,
        producer_epoch=3,
        transactional=True,
        control=True,
    )
    assert marker() == general


def test_a_marker_in_another_form_is_read_as_well() -> None:
    batch = build_batch(
        [(KEY, VALUE + b"more of a later version", (("h", b"1"),), 5)],
        producer_id=1,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    assert marker_of(batch, read_header(batch)) == Marker(True, 7)


@pytest.mark.parametrize("key", [b"", b"\0\0", b"\0\0\0\5", None])
def test_other_control_records_are_no_markers(key: bytes | None) -> None:
    batch = build_batch([(key, VALUE, (), 5)], producer_id=1, producer_epoch=0, control=True)
    assert marker_of(batch, read_header(batch)) is None


def test_a_damaged_marker_is_none() -> None:
    batch = marker()
    batch[61] = 0x7F
    assert marker_of(batch, read_header(batch)) is None
    assert COMMIT == 1
