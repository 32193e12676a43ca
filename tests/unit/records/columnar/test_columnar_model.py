"""The compiled walk against `records.walk`, which reads the same bytes record by record in Python."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records import compression
from penstock.records.batch import HEADER_SIZE, InvalidRecord, read_header
from penstock.records.build import NewRecord, build_batch, sign, stamp_append_time
from penstock.records.columnar.columns import FIELDS
from penstock.records.columnar.decode import NO_END, Decoder
from penstock.records.walk import iterate_batches_records

MODULUS = 1 << 64
Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]

small_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), small_bytes), max_size=3)
timestamps = st.integers(-1, 1 << 45)
new_record: st.SearchStrategy[NewRecord] = st.tuples(small_bytes, small_bytes, headers, timestamps)
batches = st.lists(
    st.tuples(
        st.lists(new_record, min_size=1, max_size=6), st.integers(0, 4), st.integers(0, 3), st.booleans()
    ),
    max_size=5,
)


def wrapped(number: int) -> int:
    """As a signed number of 64 bits: what a timestamp beyond them is to every reader that has no larger ones."""
    return (number + (MODULUS >> 1)) % MODULUS - (MODULUS >> 1)


def by_model(buffer: bytes, *, start_offset: int = 0, end_offset: int = NO_END) -> list[Row]:
    rows: list[Row] = []
    for header, records in iterate_batches_records(buffer):
        if header.base_offset >= end_offset:
            break
        if header.last_offset < start_offset:
            continue
        for record in records:
            delta = record.offset - header.base_offset
            timestamp_delta = record.timestamp - header.base_timestamp
            if (
                not 0 <= delta <= header.last_offset_delta
                or not -(MODULUS >> 1) <= timestamp_delta < MODULUS >> 1
            ):
                raise InvalidRecord("the model has numbers without end, the columns do not")
            if start_offset <= record.offset < end_offset:
                rows.append(
                    (
                        record.offset,
                        wrapped(record.timestamp),
                        header.timestamp_type,
                        record.key,
                        record.value,
                        list(record.headers) or None,
                    )
                )
    return rows


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    batch.validate(full=True)
    timestamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
    columns = batch.drop_columns(["timestamp"]).to_pydict() | {"timestamp": timestamps}
    return [
        (
            offset,
            timestamp,
            kind,
            key,
            value,
            None if pairs is None else [(pair["key"], pair["value"]) for pair in pairs],
        )
        for offset, timestamp, kind, key, value, pairs in zip(
            *(columns[name] for name in ("offset", "timestamp", "timestampType", "key", "value", "headers")),
            strict=True,
        )
    ]


def by_columns(
    buffer: bytes, *, start_offset: int = 0, end_offset: int = NO_END, max_rows: int = 1000
) -> list[Row]:
    decoder = Decoder("orders", list(FIELDS), max_rows=max_rows)
    rows: list[Row] = []
    for batch in decoder.decode(buffer, partition=3, start_offset=start_offset, end_offset=end_offset):
        rows += rows_of(batch)
    last = decoder.flush()
    return rows if last is None else rows + rows_of(last)


def built(parts: list[tuple[list[NewRecord], int, int, bool]]) -> bytes:
    buffer = bytearray()
    offset = 10
    for records, codec, gap, is_append_time in parts:
        batch = build_batch(records, base_offset=offset, codec=codec)
        if is_append_time:
            stamp_append_time(memoryview(batch), 1_700_000_000_000)
        buffer += batch
        offset += len(records) + gap
    return bytes(buffer)


@given(batches, st.integers(0, 40), st.integers(0, 40), st.integers(1, 8))
def test_the_rows_are_those_of_the_model(
    parts: list[tuple[list[NewRecord], int, int, bool]], start_offset: int, length: int, max_rows: int
) -> None:
    buffer = built(parts)
    bounds = {"start_offset": start_offset, "end_offset": start_offset + length}
    assert by_columns(buffer, **bounds, max_rows=max_rows) == by_model(buffer, **bounds)
    assert by_columns(buffer, max_rows=max_rows) == by_model(buffer)


@given(batches, st.integers(0, 200))
def test_a_cut_buffer_gives_its_whole_batches(
    parts: list[tuple[list[NewRecord], int, int, bool]], cut_bytes: int
) -> None:
    buffer = built(parts)
    buffer = buffer[: max(0, len(buffer) - cut_bytes)]
    assert by_columns(buffer) == by_model(buffer)


@settings(max_examples=500)
@given(
    st.lists(new_record, min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xC0, 0xFE, 0xFF]) | st.integers(0, 255),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 12),
)
def test_a_damaged_batch_with_a_right_crc_is_read_as_the_model_reads_it_or_refused_like_it(
    records: list[NewRecord], changes: list[tuple[int, int]], removed_bytes: int
) -> None:
    batch = build_batch(records, base_offset=7)
    for position, byte in changes:
        batch[HEADER_SIZE + position % (len(batch) - HEADER_SIZE)] = byte
    if removed_bytes and len(batch) - removed_bytes > HEADER_SIZE:
        del batch[-removed_bytes:]
        batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    sign(memoryview(batch))
    buffer = bytes(batch)
    try:
        expected = by_model(buffer)
    except InvalidRecord:
        with pytest.raises(InvalidRecord, match=r"orders-3 offset \d+: "):
            by_columns(buffer)
    else:
        assert by_columns(buffer) == expected


@settings(max_examples=200)
@given(
    st.lists(new_record, min_size=1, max_size=4), st.integers(0, 4), st.integers(21, 60), st.integers(0, 255)
)
def test_no_header_of_a_batch_makes_the_walk_fall(
    records: list[NewRecord], codec: int, position: int, byte: int
) -> None:
    batch = build_batch(records, base_offset=7, codec=codec)
    batch[position] = byte
    sign(memoryview(batch))
    try:
        by_columns(bytes(batch))
    except InvalidRecord:
        pass


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_walk_fall(noise: bytes) -> None:
    try:
        assert by_columns(noise) == []
    except InvalidRecord:
        pass


@given(st.lists(new_record, min_size=1, max_size=4), st.data())
def test_a_flipped_bit_behind_the_crc_is_noticed(records: list[NewRecord], data: st.DataObject) -> None:
    batch = build_batch(records)
    position = data.draw(st.integers(21, len(batch) - 1))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(InvalidRecord, match="wrong CRC"):
        by_columns(bytes(batch))


@pytest.mark.parametrize("codec", range(5), ids=compression.CODEC_NAMES)
def test_every_codec_is_read(codec: int) -> None:
    records: list[NewRecord] = [
        (b"k%d" % n, b"value %d" % n, [("n", b"%d" % n)], 1000 + n) for n in range(500)
    ]
    buffer = bytes(build_batch(records, codec=codec))
    assert read_header(buffer).codec == codec
    assert by_columns(buffer) == by_model(buffer)
