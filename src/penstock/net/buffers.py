"""Buffers for arriving bytes.

All connections share one scratch buffer, since a frame that arrived whole is handled before the loop reads again. Only a
frame that arrives in pieces gets a buffer of its own, which grows with what has really arrived: a size of 100 MiB in the
first four bytes reserves nothing. Used buffers go back to a small pool: a busy producer's requests all arrive in pieces,
and fresh memory for each of them cost as much as storing it.

Frames that are not whole yet have a bound together. Clients that have not logged in where a login is asked for, strangers,
have a small one of their own: whatever they send takes no room from those who are in. Where a bound is reached:

    a stranger comes   → the stranger whose buffer is the oldest is closed; a login takes milliseconds
    anybody else comes → whose frame has not doubled for STALE_SECONDS is closed; where there is none, the one that comes is
"""

from time import monotonic
from typing import Final, Protocol

SCRATCH_BYTES: Final = 256 * 1024
FIRST_PARTIAL_BYTES: Final = 16 * 1024
FIRST_STRANGER_BYTES: Final = 512
GROWTH: Final = 8
"""A frame in pieces may reserve this many times what has arrived of it, while there is room for that."""
ROOMY_SHARE: Final = 4
"""There is, while no more than one part in so many of the bound is in use. From then on a buffer is at most twice what it has."""
STRANGER_BYTES_LIMIT: Final = 32 * 1024 * 1024
"""Bound on all unfinished frames of clients that have not logged in."""
STALE_SECONDS: Final = 10.0
MAX_POOLED_BYTES: Final = 8 * 1024 * 1024
TOO_MANY_PARTIAL_BYTES: Final = "too many bytes of unfinished requests (queued.max.request.bytes)"
TOO_MANY_STRANGERS: Final = "too many bytes of unfinished requests of clients that have not logged in"


class Owner(Protocol):
    """The connection that a buffer is for."""

    is_stranger: bool

    @property
    def is_mid_frame(self) -> bool:
        """Whether it waits for the rest of a frame."""

    def close(self, reason: str | None = None) -> None: ...


class ReceiveBuffers:
    """What the connections of one broker share: the scratch buffer, and the buffers of frames that are still arriving."""

    __slots__ = (
        "_known",
        "_pool",
        "_pooled_bytes",
        "_strangers",
        "partial_bytes",
        "partial_bytes_limit",
        "scratch",
        "scratch_view",
        "stranger_bytes",
        "stranger_bytes_limit",
    )

    def __init__(self, partial_bytes_limit: int, stranger_bytes_limit: int = STRANGER_BYTES_LIMIT) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self.partial_bytes = 0
        """Of all but strangers."""
        self.partial_bytes_limit = partial_bytes_limit
        self.stranger_bytes = 0
        self.stranger_bytes_limit = min(stranger_bytes_limit, partial_bytes_limit)
        self._known: dict[int, tuple[Owner, float]] = {}
        """Whose each buffer is, by the buffer's identity, and since when. The oldest comes first."""
        self._strangers: dict[int, Owner] = {}
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0

    def take_for_rest(self, owner: Owner, *, have: int, need: int) -> bytearray | None:
        """For a frame of which `have` bytes are here; None as below. It has room for at least one byte more, if not for all."""
        if owner.is_stranger or self.partial_bytes > self.partial_bytes_limit // ROOMY_SHARE:
            return self.take(min(need, have + 1), owner)
        return self.take(min(need, GROWTH * have), owner)

    def take(self, size: int, owner: Owner) -> bytearray | None:
        """A buffer of at least that size; None when the unfinished frames together are past their bound. Other connections may
        be closed for it."""
        if owner.is_stranger:
            return self._take_for_stranger(size, owner)
        capacity = max(FIRST_PARTIAL_BYTES, 1 << (size - 1).bit_length())
        if self.partial_bytes + capacity > self.partial_bytes_limit and not self._make_room(capacity):
            return None
        self.partial_bytes += capacity
        pooled = self._pool.get(capacity)
        if pooled:
            self._pooled_bytes -= capacity
            buffer = pooled.pop()
        else:
            buffer = bytearray(capacity)
        self._known[id(buffer)] = owner, monotonic()
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        if self._strangers.pop(id(buffer), None) is not None:
            self.stranger_bytes -= capacity
            return
        del self._known[id(buffer)]
        self.partial_bytes -= capacity
        if self._pooled_bytes + capacity <= MAX_POOLED_BYTES:
            self._pooled_bytes += capacity
            self._pool.setdefault(capacity, []).append(buffer)

    def _take_for_stranger(self, size: int, owner: Owner) -> bytearray | None:
        capacity = max(FIRST_STRANGER_BYTES, 1 << (size - 1).bit_length())
        if self.stranger_bytes + capacity > self.stranger_bytes_limit:
            for other in list(self._strangers.values()):
                if other is not owner:
                    other.close(TOO_MANY_STRANGERS)
                if self.stranger_bytes + capacity <= self.stranger_bytes_limit:
                    break
            else:
                return None
        self.stranger_bytes += capacity
        buffer = bytearray(capacity)
        self._strangers[id(buffer)] = owner
        return buffer

    def _make_room(self, capacity: int) -> bool:
        """Whether there is room once those are closed who keep others waiting for too long."""
        oldest_s = monotonic() - STALE_SECONDS
        for owner, since_s in list(self._known.values()):
            if since_s > oldest_s:
                break
            if owner.is_mid_frame:
                owner.close(TOO_MANY_PARTIAL_BYTES)
                if self.partial_bytes + capacity <= self.partial_bytes_limit:
                    return True
        return False
