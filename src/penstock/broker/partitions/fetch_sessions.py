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
    __slots__ = ("by_id", "entries", "epoch", "last_used_ms", "session_id")

    def __init__(self, session_id: int, *, by_id: bool) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.entries: dict[tuple[str | bytes, int], FetchEntry] = {}
        self.last_used_ms = 0

    def update(self, request: FetchRequest) -> None:
        for topic_key, indexes in request.forgotten:
            for index in indexes:
                self.entries.pop((topic_key, index), None)
        for topic_key, partitions in request.topics:
            for wanted in partitions:
                # In its place, but as one that was told nothing yet: a follower that has cut its log, or changed its epoch, has
                # not taken what the last answer said of the high watermark beside.
                self.entries[(topic_key, wanted.partition)] = FetchEntry(topic_key, wanted)

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

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchPlan:
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id:
                self._sessions.pop(request.session_id, None)
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
        session.update(request)
        return FetchPlan(0, session, list(session.entries.values()), True)

    def _open(self, entries: list[FetchEntry], *, by_id: bool, now_ms: int) -> FetchSession | None:
        """A new session, or None when there is no room: the client then goes on with full fetches."""
        if not entries or not self._make_room(now_ms):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or not 0 < session_id <= MAX_SESSION_ID:
            session_id = self._new_id()
        session = FetchSession(session_id, by_id=by_id)
        session.last_used_ms = now_ms
        for entry in entries:
            session.entries[(entry.topic_key, entry.index)] = entry
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
            return False
        del self._sessions[oldest.session_id]
        return True
