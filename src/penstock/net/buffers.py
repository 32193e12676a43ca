"""Where bytes arrive.

All connections share one scratch buffer, since a frame that arrived whole is handled before the loop reads again. Only a
frame that arrives in pieces gets a buffer of its own; it grows with what has really arrived, so that a size of 100 MiB in
the first four bytes reserves nothing. Used buffers go back to a small pool: a busy producer's requests all arrive in
pieces, and fresh memory for each of them cost as much as storing it.
"""

from typing import Final

SCRATCH_BYTES: Final = 256 * 1024
FIRST_PARTIAL_BYTES: Final = 16 * 1024
GROWTH: Final = 8
"""A frame in pieces may reserve this many times what has arrived of it."""
MAX_POOLED_BYTES: Final = 8 * 1024 * 1024
TOO_MANY_PARTIAL_BYTES: Final = "too many bytes of unfinished requests (queued.max.request.bytes)"


class ReceiveBuffers:
    """What the connections of one broker share: the scratch buffer, and the buffers of frames that are still arriving."""

    __slots__ = ("_pool", "_pooled_bytes", "partial_bytes", "partial_bytes_limit", "scratch", "scratch_view")

    def __init__(self, partial_bytes_limit: int) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self.partial_bytes = 0
        self.partial_bytes_limit = partial_bytes_limit
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0

    def take(self, size: int) -> bytearray | None:
        """A buffer of at least that size; None when the unfinished frames together are past their bound."""
        capacity = max(FIRST_PARTIAL_BYTES, 1 << (size - 1).bit_length())
        if self.partial_bytes + capacity > self.partial_bytes_limit:
            return None
        self.partial_bytes += capacity
        pooled = self._pool.get(capacity)
        if pooled:
            self._pooled_bytes -= capacity
            return pooled.pop()
        return bytearray(capacity)

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        self.partial_bytes -= capacity
        if self._pooled_bytes + capacity <= MAX_POOLED_BYTES:
            self._pooled_bytes += capacity
            self._pool.setdefault(capacity, []).append(buffer)
