import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import BatchHeader
from penstock.records.build import build_batch, sign
from penstock.records.validate import (
    CHAINED_AT_ONCE,
    MAX_RECORDS,
    check_chain,
    check_chain_in_steps,
    validate,
)
from penstock.records.walk import STEP_RECORDS, NotAtOnce
from tests.unit.records.vectors import JAVA_BATCHES, RECORDS

NOW_MS = 1_700_000_000_100


def check(data: bytes | bytearray, **options: Any) -> BatchHeader:
    """As a topic does that opens no batch."""
    max_message_bytes = options.pop("max_message_bytes", 1_000_000)
    header = validate(memoryview(data), max_message_bytes=max_message_bytes, now_ms=NOW_MS, **options)
    if header.codec == 0:
        check_chain(memoryview(data), header.records_count)
    return header


def refusal(data: bytes | bytearray, **options: Any) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        check(data, **options)
    return error.value.code


def changed(at: int, code: str, value: int) -> bytearray:
    """A good batch with one field changed and the CRC made right again."""
    data = build_batch(RECORDS)
    struct.pack_into(code, data, at, value)
    sign(memoryview(data))
    return data


@pytest.mark.parametrize("codec", JAVA_BATCHES)
def test_batches_of_the_java_client_pass_in_every_codec(codec: int) -> None:
    header = check(bytes.fromhex(JAVA_BATCHES[codec]), timestamp_after_max_ms=3_600_000)
    assert header.records_count == 3


def test_nothing_at_all_is_an_invalid_record() -> None:
    assert refusal(b"") == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("size", [1, 16, 17, 60, 61, 100])
def test_a_truncated_batch_is_corrupt(size: int) -> None:
    assert refusal(build_batch(RECORDS)[:size]) == ErrorCode.CORRUPT_MESSAGE


def test_a_changed_byte_is_corrupt() -> None:
    data = build_batch(RECORDS)
    data[-1] ^= 1
    assert refusal(data) == ErrorCode.CORRUPT_MESSAGE


def test_two_batches_are_one_too_many() -> None:
    assert refusal(build_batch(RECORDS) * 2) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 48, 2**31 - 1])
def test_a_length_that_cannot_be_is_corrupt(length: int) -> None:
    assert refusal(changed(8, ">i", length)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_no_longer_supported(magic: int) -> None:
    assert refusal(changed(16, ">b", magic)) == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_a_format_of_the_future_is_an_invalid_record() -> None:
    assert refusal(changed(16, ">b", 3)) == ErrorCode.INVALID_RECORD


def test_a_batch_above_max_message_bytes_is_too_large() -> None:
    data = build_batch(RECORDS)
    assert refusal(data, max_message_bytes=len(data) - 1) == ErrorCode.MESSAGE_TOO_LARGE
    check(data, max_message_bytes=len(data))


@pytest.mark.parametrize(
    ("at", "code", "value"),
    [
        (0, ">q", 5),
        (23, ">i", 5),
        (23, ">i", -1),
        (57, ">i", 4),
        (57, ">i", 0),
        (57, ">i", -3),
        (21, ">h", 0x20),
    ],
    ids=["base offset", "delta", "negative delta", "count", "no records", "negative count", "control"],
)
def test_a_header_that_contradicts_itself_is_an_invalid_record(at: int, code: str, value: int) -> None:
    assert refusal(changed(at, code, value)) == ErrorCode.INVALID_RECORD


def test_a_producer_id_needs_a_sequence() -> None:
    assert refusal(build_batch(RECORDS, producer_id=1, producer_epoch=0)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_unsupported(codec: int) -> None:
    assert refusal(changed(21, ">h", codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_producer_may_not_claim_append_time() -> None:
    assert refusal(changed(21, ">h", 8)) == ErrorCode.INVALID_TIMESTAMP


def test_a_timestamp_too_far_ahead_is_refused_unless_the_broker_sets_it() -> None:
    data = build_batch([(b"k", b"v", (), NOW_MS + 1001)])
    assert refusal(data, timestamp_after_max_ms=1000) == ErrorCode.INVALID_TIMESTAMP
    check(data, timestamp_after_max_ms=1000, log_append_time=True)
    check(data, timestamp_after_max_ms=1001)


def test_a_record_that_lies_about_its_length_is_an_invalid_record() -> None:
    data = build_batch(RECORDS)
    data[61] += 2
    sign(memoryview(data))
    assert refusal(data) == ErrorCode.INVALID_RECORD


sizes = st.lists(
    st.tuples(st.integers(1, 120), st.sampled_from([0, 1, 40, 60, 63, 64, 100, 3000])), min_size=1, max_size=5
)


@given(sizes, st.integers(0, 200), st.integers(-3, 3))
def test_runs_of_equal_records_chain_exactly_when_their_number_is_right(
    runs: list[tuple[int, int]], step_ms: int, error: int
) -> None:
    values = [bytes(size) for count, size in runs for _ in range(count)]
    data = build_batch([(None, value, (), NOW_MS + step_ms * at) for at, value in enumerate(values)])
    assert chains(data, len(values))
    if error:
        assert not chains(data, max(len(values) + error, 0))


@given(sizes, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_length_byte_is_noticed(runs: list[tuple[int, int]], number: int, change: int) -> None:
    values = [bytes(size) for count, size in runs for _ in range(count)]
    data = build_batch([(None, value, (), NOW_MS) for value in values])
    starts = plain_walk(data)
    at = starts[number % len(starts)]
    data[at] ^= change
    assert chains(data, len(values)) == (len(plain_walk(data)) == len(values) and ends(data))


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 58, 100, 8183, 8184, 8185, 8186, 9000])
def test_the_length_of_a_single_record_is_read_as_among_others(size: int) -> None:
    good = build_batch([(None, bytes(size), (), NOW_MS)])
    assert chains(good, 1)
    for at in (61, 62, 63):
        for change in range(1, 256):
            data = bytearray(good)
            data[at] ^= change
            chains(data, 1)  # both ways of checking say the same
    for end in range(61, 66):
        chains(good[:end], 1)


def chains(data: bytearray, count: int) -> bool:
    """At once and in steps: both say the same."""
    told = []
    for walk in (check_chain, lambda *args: list(check_chain_in_steps(*args))):
        try:
            walk(memoryview(data), count)
        except ApiError:
            told.append(False)
        else:
            told.append(True)
    assert told[0] == told[1]
    return told[0]


def test_records_of_many_sizes_are_followed_in_steps() -> None:
    sizes = [number % 2 for number in range(CHAINED_AT_ONCE + 1)]
    data = build_batch([(None, bytes(size), (), NOW_MS) for size in sizes])
    with pytest.raises(NotAtOnce):
        check(data)
    steps = list(check_chain_in_steps(memoryview(data), len(sizes)))
    assert len(steps) == len(sizes) // STEP_RECORDS


def test_a_batch_of_too_many_records_is_too_large_so_that_a_client_splits_it() -> None:
    data = build_batch([(None, b"", (), NOW_MS)], codec=4)
    struct.pack_into(">i", data, 23, MAX_RECORDS)
    struct.pack_into(">i", data, 57, MAX_RECORDS + 1)
    sign(memoryview(data))
    assert refusal(data) == ErrorCode.MESSAGE_TOO_LARGE


def plain_walk(data: bytearray) -> list[int]:
    """Where each record starts, told in the simplest way; stops at the first that does not fit."""
    starts = []
    position = 61
    while position < len(data):
        start, raw, shift = position, 0, 0
        while position < len(data) and shift < 35:
            byte = data[position]
            raw |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if byte < 0x80:
                break
        else:
            return []
        if raw & 1 or position + raw // 2 > len(data):
            return []
        position += raw // 2
        starts.append(start)
    return starts


def ends(data: bytearray) -> bool:
    return bool(plain_walk(data))


@given(st.binary(max_size=150))
def test_random_bytes_are_refused_and_never_more(data: bytes) -> None:
    with pytest.raises(ApiError):
        check(data)
