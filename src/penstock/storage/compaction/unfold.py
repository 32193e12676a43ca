"""Decompression of batch after batch into one buffer, which grows to the largest of them and is never given back."""

from typing import Any

import cramjam
import numpy as np

from penstock.records import compression
from penstock.records.batch import InvalidRecord
from penstock.storage.compaction.layout import Bytes

_FIRST_BYTES = 256 * 1024
_LIBRARIES: dict[int, Any] = {
    compression.GZIP: cramjam.gzip,
    compression.LZ4: cramjam.lz4,
    compression.ZSTD: cramjam.zstd,
}


class Unfolding:
    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = np.empty(_FIRST_BYTES, dtype=np.uint8)

    def plain(self, codec: int, payload: memoryview) -> Bytes:
        """Good until the next call; InvalidRecord as from `compression.decompress`."""
        if codec == compression.NONE:
            return np.frombuffer(payload, dtype=np.uint8)
        library = _LIBRARIES.get(codec)
        if library is None:
            return np.frombuffer(compression.decompress(codec, payload), dtype=np.uint8)
        while True:
            try:
                return self._buffer[: library.decompress_into(payload, self._buffer)]
            except cramjam.DecompressionError as error:
                if compression.OUTPUT_TOO_SMALL not in str(error):
                    raise InvalidRecord(
                        f"damaged {compression.CODEC_NAMES[codec]} payload: {error}"
                    ) from error
                if len(self._buffer) >= compression.MAX_DECOMPRESSED_BYTES:
                    raise InvalidRecord(
                        f"payload unfolds to more than {compression.MAX_DECOMPRESSED_BYTES} bytes"
                    ) from error
                self._buffer = np.empty(len(self._buffer) * 2, dtype=np.uint8)
