"""Fetch sessions (KIP-227): a consumer sends its partitions once, and after that only what changed.

A session remembers what the client wants and what it was last told, so that an incremental answer holds only the
partitions with news. Sessions are numbered; each request carries the next epoch, and a wrong one is refused, so that a lost
answer cannot leave the two sides with different pictures.

Epoch 0 asks for a new session, -1 closes it (a full fetch without one).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from penstock.model.errors import ErrorCode
from penstock.wire.fetch import FetchPartition, FetchRequest, FetchResult

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MAX_SESSION_ID: Final = 2**31 - 1
EVICTABLE_AFTER_MS: Final = 120_000
"""A session unused for this long gives its place to a new one."""
MAX_BYTES: Final = 256 * 1024 * 1024
"""Of what all sessions remember, about: 600,000 partitions. Anybody may ask for some that are not there, or not for them."""
ENTRY_BYTES: Final = 400
"""Of one partition, beside its topic's name."""


class FetchEntry:
    """One partition that a client fetches: what it asks, and in a session what it was last told."""

    __slots__ = ("index", "sent_high_watermark", "sent_log_start_offset", "topic_key", "wanted")

    def __init__(self, topic_key: str | bytes, wanted: FetchPartition) -> None:
        self.topic_key = topic_key
        self.index = wanted.partition
        self.wanted = wanted
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    def has_news(self, result: FetchResult) -> bool:
        """Whether an incremental answer must hold this result; notes what it tells."""
        news = (
            result.records is not None
            or result.error_code != 0
            or result.high_watermark != self.sent_high_watermark
            or result.log_start_offset != self.sent_log_start_offset
            or result.diverging_epoch is not None
            or result.preferred_read_replica >= 0
        )
        # An error is told again until it is gone, hence -1: the next good result counts as news.
        self.sent_high_watermark = result.high_watermark if result.error_code == 0 else -1
        self.sent_log_start_offset = result.log_start_offset if result.error_code == 0 else -1
        return news


class FetchSession:
    __slots__ = ("by_id", "entries", "epoch", "last_used_ms", "session_id", "size_bytes")

    def __init__(self, session_id: int, *, by_id: bool) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.entries: dict[tuple[str | bytes, int], FetchEntry] = {}
        self.last_used_ms = 0
        self.size_bytes = 0

    def update(self, request: FetchRequest) -> None:
        for topic_key, indexes in request.forgotten:
            for index in indexes:
                if self.entries.pop((topic_key, index), None) is not None:
                    self.size_bytes -= _size_bytes(topic_key)
        for topic_key, partitions in request.topics:
            for wanted in partitions:
                if (topic_key, wanted.partition) not in self.entries:
                    self.size_bytes += _size_bytes(topic_key)
                # In its place, but as one that was told nothing yet: a follower that has cut its log, or changed its epoch, has
                # not taken what the last answer said of the high watermark beside.
                self.entries[(topic_key, wanted.partition)] = FetchEntry(topic_key, wanted)

    def begin(self, entries: Iterable[FetchEntry]) -> None:
        for entry in entries:
            self.entries[(entry.topic_key, entry.index)] = entry
        self.size_bytes = sum(_size_bytes(topic_key) for topic_key, _ in self.entries)

    def to_the_back(self, served: Iterable[FetchEntry]) -> None:
        """Partitions that were served go to the end of the line, so that the size limit starves none of them."""
        for entry in served:
            key = (entry.topic_key, entry.index)
            if self.entries.pop(key, None) is not None:
                self.entries[key] = entry


class FetchPlan(NamedTuple):
    """What to read for one request, and how to answer it."""

    error_code: int
    session: FetchSession | None
    entries: Iterable[FetchEntry]
    is_incremental: bool

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session is not None else 0


class FetchSessions:
    """The broker's sessions, at most so many; the least recently used one makes room when it may be evicted."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._size_bytes = 0
        self.evicted_count = 0
        """Sessions that made room for others."""

    def __len__(self) -> int:
        return len(self._sessions)

    def partition_count(self) -> int:
        """That all sessions remember."""
        return sum(len(session.entries) for session in self._sessions.values())

    def plan(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchPlan:
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id:
                self._remove(request.session_id)
            entries = [FetchEntry(key, wanted) for key, partitions in request.topics for wanted in partitions]
            session = self._open(entries, by_id=by_id, now_ms=now_ms) if epoch == INITIAL_EPOCH else None
            return FetchPlan(0, session, entries, False)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchPlan(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None, (), False)
        if session.by_id != by_id:
            return FetchPlan(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, None, (), False)
        if epoch != session.epoch:
            return FetchPlan(ErrorCode.INVALID_FETCH_SESSION_EPOCH, None, (), False)
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        before = session.size_bytes
        session.update(request)
        self._size_bytes += session.size_bytes - before
        if session.size_bytes > before and self._size_bytes > MAX_BYTES:
            self._remove(session.session_id)  # the client begins anew, and gets none
            return FetchPlan(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None, (), False)
        return FetchPlan(0, session, list(session.entries.values()), True)

    def forget(self, session: FetchSession) -> None:
        """One that was opened just now, and that the client will not be told of."""
        self._remove(session.session_id)

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._size_bytes -= session.size_bytes

    def _open(self, entries: list[FetchEntry], *, by_id: bool, now_ms: int) -> FetchSession | None:
        """A new session, or None when there is no room: the client then continues with full fetches."""
        size_bytes = sum(_size_bytes(entry.topic_key) for entry in entries)
        if not entries or not self._make_room(size_bytes, now_ms):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or not 0 < session_id <= MAX_SESSION_ID:
            session_id = self._new_id()
        session = FetchSession(session_id, by_id=by_id)
        session.last_used_ms = now_ms
        session.begin(entries)
        self._sessions[session_id] = session
        self._size_bytes += session.size_bytes
        return session

    def _make_room(self, size_bytes: int, now_ms: int) -> bool:
        while len(self._sessions) >= self._slots or self._size_bytes + size_bytes > MAX_BYTES:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
                return False
            self.evicted_count += 1
            self._remove(oldest.session_id)
        return True


def _size_bytes(topic_key: str | bytes) -> int:
    return ENTRY_BYTES + len(topic_key)
