import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records import compression
from penstock.records.batch import HEADER_SIZE, InvalidRecord, read_header
from penstock.records.build import build_batch
from penstock.records.compression import CODEC_NAMES, CODECS
from penstock.records.recompress import recompress
from penstock.records.validate import validate
from penstock.records.walk import iterate_records

CODEC_NUMBERS = range(len(CODEC_NAMES))
RECORDS = [
    (b"k%d" % number, b"value " * 30, [("h", b"x")], 1_700_000_000_000 + number) for number in range(50)
]


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
    with pytest.raises(InvalidRecord):
        recompress(memoryview(damaged), read_header(damaged), target)


def test_a_payload_whose_records_do_not_fill_it_is_refused() -> None:
    batch = build_batch(RECORDS[:3], codec=compression.ZSTD)
    header = read_header(batch)._replace(records_count=2)
    with pytest.raises(InvalidRecord, match="add up"):
        recompress(memoryview(batch), header, compression.NONE)
