"""Kafka's five codecs over cramjam, with a bound on what a small payload may grow to.

    0 none | 1 gzip | 2 snappy | 3 lz4 (frame format) | 4 zstd

Snappy comes in two forms: the raw block (librdkafka, Python clients) and the Java library's stream of blocks,
which starts with 82 'SNAPPY' 00, two 4-byte versions, then [4-byte length, raw block] to the end. Both are
read; raw is not written, since the Java client reads only the stream form.
"""

import struct
from typing import Any

import cramjam

from penstock.records.batch import Buffer, InvalidRecord

Plain = bytes | bytearray
"""What was unfolded: a slice of it is a copy."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CODECS = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
"""The values of compression.type that name a codec."""

# A batch holds at most message.max.bytes compressed; what it unfolds to is bounded here. 2^27 is far above
# any batch a client builds (batch.size is counted before compression) and far below what would hurt the
# process.
MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_LEAST_BLOCK_BYTES = (
    1024  # blocks count as so large at least: each costs Python work, and may hold nothing
)
_GZIP_MEMBER = b"\x1f\x8b\x08"
_GZIP_LEAST_MEMBER_BYTES = 1024  # likewise; producers write one, and each costs the codec a new state
_COUNTED_BYTES = 1024 * 1024  # looked through at a time, so that others get the interpreter in between
# The Java client refuses frames whose blocks depend on one another, which is what the library's own frame
# writer makes. So the frame is written here: version 1, independent blocks of at most 64 KiB, no checksums,
# and the header's own check byte.
_LZ4_FRAME_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000  # this bit of a block's length: its bytes are not compressed
LZ4_DEFAULT_LEVEL = 9
_FIRST_GUESS = 8  # output is tried at this multiple of the input, then doubled
OUTPUT_TOO_SMALL = "failed to write whole buffer"  # cramjam's word for an output buffer that is full


class UnfoldsTooLarge(InvalidRecord):
    """A payload is larger than the bound it was unfolded with."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"payload unfolds to more than {max_bytes} bytes")


def decompress(codec: int, payload: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The plain bytes; InvalidRecord when the payload is damaged or would be larger than max_bytes."""
    return bytes(unfold(codec, payload, max_bytes=max_bytes))


def unfold(codec: int, payload: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Plain:
    """As `decompress`, without the copy that makes `bytes` of it. The codecs let go of the interpreter's lock while they work, so
    in a thread this holds up nobody, however large the payload is.
    """
    plain: Plain
    try:
        if codec == NONE:
            plain = bytes(payload)
        elif codec == SNAPPY:
            plain = _decompress_snappy(bytes(payload), max_bytes)
        elif codec == GZIP:
            if _count_gzip_members(payload) > max_bytes // _GZIP_LEAST_MEMBER_BYTES + 1:
                raise UnfoldsTooLarge(max_bytes)
            plain = _decompress_stream(cramjam.gzip, payload, max_bytes)
        elif codec == LZ4:
            plain = _decompress_stream(cramjam.lz4, payload, max_bytes)
        elif codec == ZSTD:
            plain = _decompress_stream(cramjam.zstd, payload, max_bytes)
        else:
            raise InvalidRecord(f"unknown compression codec {codec}")
    except (cramjam.DecompressionError, OSError, struct.error) as error:
        raise InvalidRecord(f"damaged {CODEC_NAMES[codec]} payload: {error}") from error
    if len(plain) > max_bytes:
        raise UnfoldsTooLarge(max_bytes)
    return plain


def compress(codec: int, plain: Buffer, *, level: int | None = None) -> bytes:
    """`level` as in compression.gzip.level, compression.lz4.level and compression.zstd.level; None: Kafka's default."""
    if codec == NONE:
        return bytes(plain)
    if codec == SNAPPY:
        return _compress_xerial(memoryview(plain))
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(plain, None if level is None or level < 0 else level))
    if codec == LZ4:
        return _compress_lz4(memoryview(plain), LZ4_DEFAULT_LEVEL if level is None else level)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(plain, level))
    raise ValueError(f"unknown compression codec {codec}")


def _decompress_stream(library: Any, payload: Buffer, max_bytes: int) -> bytearray:
    """Into a buffer of a bounded size, doubled while it is too small: a bomb never gets more than max_bytes
    of memory.
    """
    size = min(max(len(payload) * _FIRST_GUESS, 1024), max_bytes)
    while True:
        output = bytearray(size)
        try:
            written = library.decompress_into(payload, output)
        except cramjam.DecompressionError as error:
            if OUTPUT_TOO_SMALL not in str(error):
                raise
            if size >= max_bytes:
                raise UnfoldsTooLarge(max_bytes) from error
            size = min(size * 2, max_bytes)
        else:
            del output[written:]
            return output


def _count_gzip_members(payload: Buffer) -> int:
    """At most so many: what is compressed may look like the beginning of one, once in 16 MiB."""
    view = memoryview(payload)
    overlap = len(_GZIP_MEMBER) - 1
    return sum(
        bytes(view[start : start + _COUNTED_BYTES + overlap]).count(_GZIP_MEMBER)
        for start in range(0, len(view), _COUNTED_BYTES)
    )


def _decompress_snappy(payload: bytes, max_bytes: int) -> Plain:
    if not payload.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(payload, max_bytes)
    blocks: list[bytearray] = []
    total = 0
    position = len(_XERIAL_HEADER)
    max_blocks = max_bytes // _XERIAL_LEAST_BLOCK_BYTES + 1
    while position < len(payload):
        if len(blocks) == max_blocks:
            raise UnfoldsTooLarge(max_bytes)
        (length,) = struct.unpack_from(">i", payload, position)
        position += 4
        if length < 0 or position + length > len(payload):
            raise InvalidRecord("damaged snappy payload: a block passes the end")
        blocks.append(_decompress_snappy_block(payload[position : position + length], max_bytes - total))
        total += len(blocks[-1])
        position += length
    return b"".join(blocks)


def _decompress_snappy_block(block: bytes, max_bytes: int) -> bytearray:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > max_bytes:
        raise UnfoldsTooLarge(max_bytes)
    output = bytearray(size)
    del output[cramjam.snappy.decompress_raw_into(block, output) :]
    return output


def _compress_xerial(plain: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(plain), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(bytes(plain[start : start + _XERIAL_BLOCK_BYTES])))
        parts.append(struct.pack(">i", len(block)))
        parts.append(block)
    return b"".join(parts)


def _compress_lz4(plain: memoryview, level: int) -> bytes:
    parts = [_LZ4_FRAME_HEADER]
    for start in range(0, len(plain), _LZ4_BLOCK_BYTES):
        piece = bytes(plain[start : start + _LZ4_BLOCK_BYTES])
        # As in Kafka the default level, 9, is the fast compressor; every other is the thorough one at that level.
        if level == LZ4_DEFAULT_LEVEL:
            block = bytes(cramjam.lz4.compress_block(piece, store_size=False))
        else:
            block = _thorough_lz4_block(piece, level)
        if len(block) < len(piece):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(piece) | _LZ4_STORED), piece)
    parts.append(bytes(4))  # the end mark
    return b"".join(parts)


def _thorough_lz4_block(piece: bytes, level: int) -> bytes:
    """The library takes a level only for frames: the one block of such a frame, or the piece when it did not shrink."""
    frame = bytes(cramjam.lz4.compress(piece, level))
    start = len(_LZ4_FRAME_HEADER) + 4
    (length,) = struct.unpack_from("<I", frame, start - 4)
    return piece if length & _LZ4_STORED else frame[start : start + length]
