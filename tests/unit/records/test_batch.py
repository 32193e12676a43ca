import struct

import pytest

from penstock.records import batch
from penstock.records.batch import HEADER, HEADER_SIZE, InvalidRecord, iterate_headers, read_header
from penstock.records.build import build_batch
from tests.unit.records.vectors import JAVA_ABORT_MARKER, JAVA_BATCHES


def test_the_header_takes_61_bytes() -> None:
    assert HEADER.size == HEADER_SIZE


def test_a_header_of_the_java_client_is_read_field_by_field() -> None:
    header = read_header(bytes.fromhex(JAVA_BATCHES[3]))
    assert header == (0, 0x76, 7, 2, 0x588D5F71, 3, 2, 1_700_000_000_000, 1_700_000_000_005, 4711, 3, 42, 3)
    assert header.size_bytes == len(JAVA_BATCHES[3]) // 2
    assert header.last_offset == 2
    assert header.codec == 3
    assert header.last_sequence == 44
    assert header.timestamp_type == batch.CREATE_TIME
    assert not header.is_transactional
    assert not header.is_control


def test_an_abort_marker_is_a_transactional_control_batch() -> None:
    header = read_header(bytes.fromhex(JAVA_ABORT_MARKER))
    assert header.is_transactional
    assert header.is_control
    assert header.last_offset == 100
    assert header.last_sequence == -1


def test_a_sequence_wraps_to_zero_after_the_largest_int() -> None:
    records = [(None, b"x", (), 0)] * 3
    header = read_header(build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert header.last_sequence == 0


def test_headers_are_iterated_until_the_first_batch_that_is_not_whole() -> None:
    one, two = build_batch([(None, b"a", (), 0)]), build_batch([(None, b"bb", (), 0)] * 2, base_offset=1)
    data = bytes(one + two + two[:-1])
    assert [(position, header.base_offset) for position, header in iterate_headers(data)] == [
        (0, 0),
        (len(one), 1),
    ]


def test_a_buffer_of_another_format_is_no_batch() -> None:
    data = build_batch([(None, b"a", (), 0)])
    data[batch.MAGIC_AT] = 1
    with pytest.raises(InvalidRecord):
        list(iterate_headers(data))


def test_a_length_below_the_header_cannot_loop_forever() -> None:
    data = build_batch([(None, b"a", (), 0)])
    struct.pack_into(">i", data, batch.BATCH_LENGTH_AT, -12)
    with pytest.raises(InvalidRecord):
        list(iterate_headers(data))
