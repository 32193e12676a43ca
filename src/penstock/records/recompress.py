"""A batch in another codec: what compression.type asks for when it is not `producer`.

Only the payload is unfolded and folded again; the records in it stay byte for byte, and so do their offsets,
timestamps, producer and sequence in the header. As in Kafka a batch that has the wanted codec already is stored as it
came, whatever its level.
"""

from penstock.records import compression
from penstock.records.batch import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CODEC_MASK,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    BatchHeader,
    InvalidRecord,
)
from penstock.records.build import sign
from penstock.records.validate import records_chain


def recompress(batch: memoryview, header: BatchHeader, codec: int, *, level: int | None = None) -> memoryview:
    """The same records under another codec, in memory of their own; InvalidRecord when the payload is damaged."""
    plain = compression.decompress(header.codec, batch[HEADER_SIZE : header.size_bytes])
    unfolded = _with_payload(batch, plain, compression.NONE)
    if not records_chain(unfolded, header.records_count):
        raise InvalidRecord("the lengths of the records do not add up to the batch")
    if codec != compression.NONE:
        unfolded = _with_payload(batch, compression.compress(codec, plain, level=level), codec)
    sign(unfolded)
    return unfolded


def _with_payload(batch: memoryview, payload: bytes, codec: int) -> memoryview:
    made = bytearray(HEADER_SIZE + len(payload))
    made[:HEADER_SIZE] = batch[:HEADER_SIZE]
    made[BATCH_LENGTH_AT : BATCH_LENGTH_AT + 4] = (len(made) - LENGTH_OVERHEAD).to_bytes(4, "big")
    made[ATTRIBUTES_AT + 1] = made[ATTRIBUTES_AT + 1] & ~CODEC_MASK | codec
    made[HEADER_SIZE:] = payload
    return memoryview(made)
