import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.batch import InvalidRecord
from penstock.records.compression import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    UnfoldsTooLarge,
    compress,
    decompress,
)

CODECS = range(len(CODEC_NAMES))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=2000), times=st.integers(1, 100))
def test_what_was_compressed_comes_back(codec: int, data: bytes, times: int) -> None:
    assert decompress(codec, compress(codec, data * times)) == data * times


def test_raw_snappy_is_read_as_well_as_the_java_stream() -> None:
    plain = b"some text " * 50
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(plain))) == plain
    assert compress(SNAPPY, plain).startswith(b"\x82SNAPPY\x00")


def test_an_lz4_frame_has_independent_blocks_as_the_java_client_demands() -> None:
    flags = compress(LZ4, b"x" * 200_000)[4]
    assert flags & 0x20


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_refused_at_its_bound(codec: int) -> None:
    bomb = compress(codec, bytes(3_000_000))
    with pytest.raises(InvalidRecord, match="more than"):
        decompress(codec, bomb, max_bytes=1_000_000)
    assert len(decompress(codec, bomb, max_bytes=3_000_000)) == 3_000_000


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_payload_that_stops_early_is_an_invalid_record(codec: int) -> None:
    whole = compress(codec, b"some text that is long enough to be cut " * 10)
    with pytest.raises(InvalidRecord):
        decompress(codec, whole[:-10])


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_nonsense_is_an_invalid_record(codec: int) -> None:
    with pytest.raises(InvalidRecord):
        decompress(codec, b"\xff\xfenonsense")


def test_a_snappy_block_that_lies_about_its_length_is_an_invalid_record() -> None:
    with pytest.raises(InvalidRecord):
        decompress(SNAPPY, b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff")


def test_an_unknown_codec_is_an_invalid_record() -> None:
    with pytest.raises(InvalidRecord):
        decompress(5, b"")


def test_a_gzip_payload_of_few_members_is_read_and_one_of_very_many_refused() -> None:
    """Each member costs the codec a new state, also an empty one: a mebibyte of them took half a second."""
    empty = compress(GZIP, b"")
    assert decompress(GZIP, compress(GZIP, b"one") + empty + compress(GZIP, b"two")) == b"onetwo"
    with pytest.raises(UnfoldsTooLarge):
        decompress(GZIP, empty * 100_000, max_bytes=1024 * 1024)
    with pytest.raises(UnfoldsTooLarge):
        decompress(GZIP, empty * 1000, max_bytes=64 * 1024)
