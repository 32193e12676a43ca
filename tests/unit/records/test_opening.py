import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import ApiError, ErrorCode
from penstock.records import compression
from penstock.records.batch import HEADER_SIZE, BatchHeader, read_header
from penstock.records.build import build_batch, sign
from penstock.records.check import Wanted, check_records
from penstock.records.compression import CODEC_NAMES, CODECS
from penstock.records.opening import fold, open_at_once, unfold_batch
from penstock.records.validate import validate
from penstock.records.walk import AT_ONCE_BYTES, STEP_RECORDS, NotAtOnce, iterate_records
from tests.unit.records.vectors import RECORDS as MIXED

CODEC_NUMBERS = range(len(CODEC_NAMES))
RECORDS = [
    (b"k%d" % number, b"value " * 30, [("h", b"x")], 1_700_000_000_000 + number) for number in range(50)
]
NOW_MS = 1_700_000_000_100


def opened(data: bytes | bytearray, *, at_once: bool = True, **wanted: Any) -> memoryview:
    """As a topic stores it that wants this of the records."""
    wants = Wanted(wanted.pop("max_message_bytes", 1 << 20), **wanted)
    batch = memoryview(bytearray(data))
    header = read_header(batch)
    if at_once:
        return open_at_once(batch, header, wants)
    plain = unfold_batch(batch, header)
    steps = check_records(plain, header, wants)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return fold(batch, header, plain, wants, max_timestamp=done.value)


def recompress(batch: memoryview, header: BatchHeader, codec: int, *, level: int | None = None) -> memoryview:
    return opened(batch, at_once=False, codec=codec, level=level)


def refusal(data: bytes | bytearray, **wanted: Any) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        opened(data, **wanted)
    return error.value.code


@pytest.mark.parametrize(("source", "target"), list(itertools.product(CODEC_NUMBERS, CODEC_NUMBERS)))
def test_the_records_and_all_else_in_the_header_stay(source: int, target: int) -> None:
    batch = build_batch(RECORDS, codec=source, producer_id=7, producer_epoch=2, base_sequence=11)
    made = recompress(memoryview(batch), read_header(batch), target)
    header = validate(made, max_message_bytes=1 << 20, now_ms=1_700_000_000_000)
    assert header.codec == target
    before, after = read_header(batch)._asdict(), header._asdict()
    for changed in ("batch_length", "crc", "attributes"):
        del before[changed], after[changed]
    assert before == after
    assert list(iterate_records(made)) == list(iterate_records(batch))


def test_a_level_is_obeyed() -> None:
    words = random.Random(1).choices([b"%06d " % (number * number) for number in range(300)], k=20_000)
    batch = build_batch([(None, b"".join(words), (), 0)])
    header = read_header(batch)
    for codec, low, high in ((compression.GZIP, 1, 9), (compression.ZSTD, -50, 19), (compression.LZ4, 9, 12)):
        small = recompress(memoryview(batch), header, codec, level=high)
        large = recompress(memoryview(batch), header, codec, level=low)
        assert len(small) < len(large), CODEC_NAMES[codec]
        assert list(iterate_records(small)) == list(iterate_records(large)) == list(iterate_records(batch))


@pytest.mark.parametrize("level", [-1, 1, 6, 9])
def test_every_level_of_gzip_can_be_read_again(level: int) -> None:
    assert compression.decompress(1, compression.compress(1, b"abc" * 100, level=level)) == b"abc" * 100


@pytest.mark.parametrize("level", range(1, 18))
def test_every_level_of_lz4_can_be_read_again(level: int) -> None:
    plain = bytes(range(256)) * 600
    assert compression.decompress(3, compression.compress(3, plain, level=level)) == plain


@pytest.mark.parametrize("level", [-131072, -1, 1, 3, 22])
def test_every_level_of_zstd_can_be_read_again(level: int) -> None:
    assert compression.decompress(4, compression.compress(4, b"abc" * 100, level=level)) == b"abc" * 100


@given(st.binary(min_size=1, max_size=200), st.sampled_from(sorted(CODECS.values())))
def test_a_damaged_payload_is_refused_or_unfolds_to_whole_records(junk: bytes, target: int) -> None:
    batch = build_batch(RECORDS[:3], codec=compression.GZIP)
    damaged = bytearray(batch[:HEADER_SIZE]) + junk
    damaged[8:12] = (len(damaged) - 12).to_bytes(4, "big")
    if target != compression.GZIP:
        assert refusal(damaged, codec=target) is ErrorCode.INVALID_RECORD


def test_a_payload_whose_records_do_not_fill_it_is_refused() -> None:
    batch = build_batch(RECORDS[:3], codec=compression.ZSTD)
    batch[57:61] = (2).to_bytes(4, "big")
    with pytest.raises(ApiError, match="after the last record"):
        opened(batch, codec=compression.NONE)


def test_one_old_record_in_a_batch_is_noticed() -> None:
    data = build_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS - 2000)])
    assert refusal(data, oldest_ms=NOW_MS - 1000) == ErrorCode.INVALID_TIMESTAMP
    opened(data, oldest_ms=NOW_MS - 2000)
    opened(data, oldest_ms=NOW_MS - 1000, append_time=True)


def test_one_record_of_the_future_is_noticed_though_the_header_does_not_tell() -> None:
    data = build_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS + 2000)])
    data[35:43] = data[27:35]
    assert refusal(data, newest_ms=NOW_MS + 1000) == ErrorCode.INVALID_TIMESTAMP


def test_the_largest_timestamp_is_made_right() -> None:
    good = build_batch([(b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS + 2000)])
    data = bytearray(good)
    data[35:43] = data[27:35]
    sign(memoryview(data))
    assert opened(data, keys=True) == good
    assert opened(data, keys=True, append_time=True) == data


def test_records_without_a_timestamp_have_none_to_be_too_old() -> None:
    opened(build_batch([(b"k", b"v", (), -1)]), oldest_ms=NOW_MS)


@pytest.mark.parametrize("codec", [0, 4])
def test_a_compacted_topic_wants_a_key_in_every_record(codec: int) -> None:
    assert refusal(build_batch(MIXED, codec=codec), keys=True) == ErrorCode.INVALID_RECORD
    opened(build_batch([MIXED[0], MIXED[2]], codec=codec), keys=True)


def test_a_damaged_payload_on_a_compacted_topic_is_an_invalid_record() -> None:
    data = build_batch(MIXED, codec=4)
    data[-8:] = bytes(8)
    sign(memoryview(data))
    assert refusal(data, keys=True) == ErrorCode.INVALID_RECORD


def same_records(count: int, *, codec: int = 0) -> bytearray:
    """A batch whose records all have the offset delta 0, as one that compresses to nothing."""
    payload = bytes([12, 0, 0, 0, 0, 0, 0]) * count
    data = build_batch([(b"", b"", (), NOW_MS)], codec=codec)
    data[HEADER_SIZE:] = compression.compress(codec, payload)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[23:27] = (count - 1).to_bytes(4, "big")
    data[57:61] = count.to_bytes(4, "big")
    sign(memoryview(data))
    return data


def test_offset_deltas_count_from_zero() -> None:
    opened(same_records(1), keys=True)
    assert refusal(same_records(2), keys=True) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(build_batch([(b"k", b"", (), NOW_MS)] * (STEP_RECORDS + 1)), id="records"),
        pytest.param(build_batch([(b"k", bytes(AT_ONCE_BYTES), (), NOW_MS)]), id="bytes"),
        pytest.param(build_batch([(b"k", bytes(1 << 20), (), NOW_MS)], codec=4), id="unfolded bytes"),
        pytest.param(build_batch([(b"k", b"", [("", b"")] * STEP_RECORDS, NOW_MS)]), id="headers"),
    ],
)
def test_a_large_batch_is_opened_in_steps(data: bytearray) -> None:
    with pytest.raises(NotAtOnce):
        opened(data, keys=True)
    assert opened(data, at_once=False, keys=True) == data


def test_no_step_is_longer_than_the_others() -> None:
    headers = [("name", b"value")] * 10_000
    data = memoryview(build_batch([(b"k", b"", headers if at == 7 else (), NOW_MS) for at in range(10_000)]))
    steps = check_records(bytes(data[HEADER_SIZE:]), read_header(data), Wanted(1 << 30))
    assert len(list(steps)) == 20_000 // STEP_RECORDS


def test_a_batch_that_grows_too_large_in_the_topics_codec_is_refused() -> None:
    data = build_batch([(b"k", bytes(10_000), (), NOW_MS)], codec=4)
    assert refusal(data, codec=compression.NONE, max_message_bytes=5000) is ErrorCode.MESSAGE_TOO_LARGE
    noise = build_batch([(b"k", random.Random(1).randbytes(10_000), (), NOW_MS)])
    assert refusal(noise, codec=compression.LZ4, max_message_bytes=9000) is ErrorCode.MESSAGE_TOO_LARGE


@given(st.integers(0, 400), st.integers(0, 255))
def test_what_passes_is_what_a_reader_reads(at: int, byte: int) -> None:
    data = build_batch([(b"key", b"value " * 20, (), NOW_MS)] * 3)
    data[HEADER_SIZE + at % (len(data) - HEADER_SIZE)] = byte
    try:
        opened(data, keys=True)
    except ApiError:
        return
    read = list(iterate_records(data))
    assert [record.offset for record in read] == [0, 1, 2]
    assert all(record.key is not None for record in read)
