import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.batch import HEADER_SIZE, InvalidRecord, read_header
from penstock.records.build import build_batch, sign, stamp_append_time, write_varint
from penstock.records.walk import (
    Record,
    finish,
    iterate_batches_records,
    iterate_records,
    read_pairs,
    read_varint,
    unfold_in_steps,
)
from tests.unit.records.vectors import JAVA_ABORT_MARKER, JAVA_BATCHES, RECORDS


@pytest.mark.parametrize("codec", JAVA_BATCHES)
def test_records_of_the_java_client_are_read_in_every_codec(codec: int) -> None:
    records = list(iterate_records(bytes.fromhex(JAVA_BATCHES[codec])))
    assert records == [
        Record(offset, timestamp, key, value, headers)
        for offset, (key, value, headers, timestamp) in enumerate(RECORDS)
    ]


def test_our_uncompressed_batch_is_the_java_clients_byte_for_byte() -> None:
    ours = build_batch(RECORDS, producer_id=4711, producer_epoch=3, base_sequence=42, leader_epoch=7)
    assert ours.hex() == JAVA_BATCHES[0]


def test_the_key_of_an_abort_marker_says_abort() -> None:
    (record,) = iterate_records(bytes.fromhex(JAVA_ABORT_MARKER))
    assert record.key == b"\x00\x00\x00\x00"
    assert record.value is not None
    assert int.from_bytes(record.value[2:6], "big") == 12


def test_append_time_replaces_every_records_own() -> None:
    data = build_batch(RECORDS)
    header = stamp_append_time(memoryview(data), 1_800_000_000_000)
    assert header.timestamp_type == 1
    assert {record.timestamp for record in iterate_records(data)} == {1_800_000_000_000}


def test_the_batches_of_a_log_are_walked_one_after_the_other() -> None:
    data = build_batch(RECORDS, codec=4) + build_batch(RECORDS[:1], base_offset=3)
    offsets = [[record.offset for record in records] for _, records in iterate_batches_records(data)]
    assert offsets == [[0, 1, 2], [3]]


def pairs_of(batch: bytes | bytearray) -> list[tuple[bytes | None, bytes | None]]:
    header = read_header(batch)
    plain = finish(unfold_in_steps(batch, header))
    some = list(read_pairs(plain, header.records_count, at_a_time=2))
    assert all(len(each) <= 2 for each in some)
    return [pair for each in some for pair in each]


@pytest.mark.parametrize("codec", JAVA_BATCHES)
def test_keys_and_values_alone_are_read_in_every_codec(codec: int) -> None:
    assert pairs_of(bytes.fromhex(JAVA_BATCHES[codec])) == [record[:2] for record in RECORDS]


FIELD = (
    st.none() | st.binary(max_size=3) | st.integers(60, 70).map(bytes) | st.integers(8190, 8200).map(bytes)
)


@given(st.lists(st.tuples(FIELD, FIELD, st.integers(0, 2**40)), min_size=1, max_size=70))
def test_what_is_built_is_read_with_lengths_of_any_width(
    written: list[tuple[bytes | None, bytes | None, int]],
) -> None:
    batch = build_batch((key, value, (), timestamp) for key, value, timestamp in written)
    assert [(record.key, record.value, record.timestamp) for record in iterate_records(batch)] == written
    assert pairs_of(batch) == [record[:2] for record in written]


@given(st.integers(HEADER_SIZE, len(JAVA_BATCHES[0]) // 2 - 1), st.integers(0, 255))
def test_of_damaged_records_keys_and_values_are_the_same_or_refused(at: int, byte: int) -> None:
    data = bytearray.fromhex(JAVA_BATCHES[0])
    data[at] = byte
    try:
        pairs = pairs_of(data)
    except InvalidRecord:
        with pytest.raises(InvalidRecord):
            list(iterate_records(data))
        return
    try:
        records = list(iterate_records(data))
    except InvalidRecord:
        return  # something that is not looked at here: headers, or a delta that is too long
    assert pairs == [(record.key, record.value) for record in records]


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_comes_back(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(out, 0) == (value, len(out))


def test_a_varint_of_eleven_bytes_is_refused() -> None:
    with pytest.raises(InvalidRecord):
        read_varint(b"\xff" * 11, 0)


@given(st.integers(HEADER_SIZE, len(JAVA_BATCHES[0]) // 2 - 1), st.integers(0, 255))
def test_any_changed_byte_gives_records_or_invalid_record_and_nothing_else(at: int, byte: int) -> None:
    data = bytearray.fromhex(JAVA_BATCHES[0])
    data[at] = byte
    try:
        list(iterate_records(data))
    except InvalidRecord:
        pass


@given(st.binary(max_size=80))
def test_random_records_give_records_or_invalid_record_and_nothing_else(payload: bytes) -> None:
    data = bytearray.fromhex(JAVA_BATCHES[0])[:HEADER_SIZE] + payload
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    sign(memoryview(data))
    try:
        list(iterate_records(data, read_header(data)))
    except InvalidRecord:
        pass


def test_bytes_after_the_last_record_are_refused() -> None:
    data = build_batch(RECORDS)
    data[60] = 2  # one record fewer than there are
    with pytest.raises(InvalidRecord, match="after the last record"):
        list(iterate_records(data))
