"""Ticket, Alarm, Outcome, and what every shard offers to its host."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, NewType, Protocol, cast

Ticket = NewType("Ticket", int)
"""Identifies a reply that a client waits for; the host knows which connection is behind it."""

NO_PRODUCER_ID: Final = -1

AlarmKey = tuple[str, ...]
"""Names one timer of one shard, e.g. ("session", group, member). Setting a key again moves its timer."""


class Alarm(NamedTuple):
    key: AlarmKey
    at_ms: int | None
    """When it goes off, on the clock of `now_ms`; None cancels it (also where none was set)."""


# `Alarm(key, at_ms)` runs a Python-level __new__; this is the same without it. Nearly every request sets one.
_new_alarm = cast(Callable[[Any, Any], Alarm], tuple.__new__)


class RequestContext(NamedTuple):
    """Who asks. The version is here for the few rules that depend on it, never for the layout of a
    message."""

    api_version: int
    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may describe a topic; None: all of them."""


class Outcome:
    """What should happen because of one event, in the order in which it was decided."""

    __slots__ = ("alarms", "errands", "producer", "records", "replies")

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.replies: list[tuple[Ticket, object]] = []
        self.alarms: list[Alarm] = []
        self.errands: list[object] = []
        """What the host must do elsewhere once the records are in the log, e.g. write markers of a transaction."""
        self.producer: tuple[int, int] | None = None
        """(producer id, epoch): the records belong to an open transaction of this producer."""

    def record(self, key: bytes, value: bytes | None) -> None:
        self.records.append((key, value))

    def reply(self, ticket: Ticket, response: object) -> None:
        self.replies.append((ticket, response))

    def alarm(self, key: AlarmKey, at_ms: int | None) -> None:
        self.alarms.append(_new_alarm(Alarm, (key, at_ms)))


class Shard(Protocol):
    """One partition's worth of a coordinator, beside its own requests."""

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """With `replay_marker` the only place where hard state changes. With a producer id the record belongs to an
        open transaction, and counts once that is committed. ValueError: it is not what its version says."""

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """The transaction of a producer has ended, says a marker in the shard's own partition."""

    def on_loaded(self, now_ms: int) -> Outcome:
        """The whole log has been replayed; called once, before the first request."""
        ...

    def on_alarm(self, key: AlarmKey, now_ms: int) -> Outcome:
        """An alarm went off. Late or stale ones are harmless."""
        ...

    def on_writable(self, now_ms: int) -> Outcome:
        """For a while nothing could be written, and so nobody who asked for more than a reading was heard."""
        ...

    def on_unload(self) -> Outcome:
        """The shard is given up: an answer for every parked ticket, no records."""
        ...

    def hard_state(self) -> object:
        """A value that is equal for two shards exactly if a restart could not tell them apart."""
        ...
