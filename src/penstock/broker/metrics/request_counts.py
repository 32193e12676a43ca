"""What requests there were, of which version, with which errors, and how long they took, for the metrics page.

Every request is counted on its way. To count is to take the handler from an iterator that gives the same one again and again:
it knows how often it was asked, and that costs less than to add one to a number. Each API has one for each version. How long a
request took is looked at for a sample: the first one of an API in each 40 ms (`Dispatch`), so each where there are few. To time a
request costs about as much as a small request, since it is done so seldom. So counts are exact, and quantiles are those of the
sample. docs/decisions/0005-metrics-on-demand.md has the figures.

    began ──local──▶ handled ──remote──▶ ready ──response queue──▶ sending ──response send──▶ sent
      └───────────────────────────────────────total────────────────────────────────────────────┘
"""

from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from time import perf_counter_ns
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from penstock.broker.metrics.quantiles import Histogram
from penstock.wire.schema import Struct

VERSIONS: Final = 32
"""Of one API that are told apart. A client may ask ApiVersions in any: those are timed each time, and counted as the last."""
MOST_REQUESTS: Final = 1 << 62
NS_PER_US: Final = 1000


T = TypeVar("T")
Counted: TypeAlias = "list[repeat[T]]"


class TimedConnection(Protocol):
    """What a timing must know of the connection: when the reply leaves."""

    is_closed: bool
    timing: Any


class ApiTimes:
    """Of one API: microseconds, and bytes."""

    __slots__ = ("local", "remote", "request_bytes", "response_queue", "response_send", "total")

    def __init__(self) -> None:
        self.total = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.response_queue = Histogram()
        self.response_send = Histogram()
        self.request_bytes = Histogram()

    def turn(self) -> None:
        for name in self.__slots__:
            getattr(self, name).turn()


class ApiCounts:
    __slots__ = ("_counted", "_times", "errors", "throttled")

    def __init__(self) -> None:
        self._counted: Counted[Any] = [repeat(None, MOST_REQUESTS) for _ in range(VERSIONS)]
        self.errors: dict[int, int] = {}
        self.throttled: Histogram | None = None
        """Milliseconds of those who had to wait."""
        self._times: ApiTimes | None = None

    @property
    def times(self) -> ApiTimes:
        if self._times is None:
            self._times = ApiTimes()
        return self._times

    def counted(self, handler: T) -> "Counted[T]":
        """By version: `next` gives the handler, and counts a request."""
        self._counted = [repeat(handler, MOST_REQUESTS) for _ in range(VERSIONS)]
        return self._counted

    def note(self, version: int) -> None:
        next(self._counted[version if 0 <= version < VERSIONS else VERSIONS - 1])

    def versions(self) -> dict[int, int]:
        """Requests of each version that was asked for."""
        counts = ((version, MOST_REQUESTS - length_hint(each)) for version, each in enumerate(self._counted))
        return {version: count for version, count in counts if count}

    def note_error(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    def note_throttle(self, wait_ms: int) -> None:
        if self.throttled is None:
            self.throttled = Histogram()
        self.throttled.note(wait_ms)

    def turn(self) -> None:
        if self._times is not None:
            self._times.turn()
        if self.throttled is not None:
            self.throttled.turn()


class RequestCounts:
    """By API key; an API has its counts from its first request on."""

    def __init__(self) -> None:
        self._apis: dict[int, ApiCounts] = {}

    def of(self, api_key: int) -> ApiCounts:
        counts = self._apis.get(api_key)
        if counts is None:
            counts = self._apis[api_key] = ApiCounts()
        return counts

    def all(self) -> list[tuple[int, ApiCounts]]:
        return sorted((key, counts) for key, counts in self._apis.items() if counts.versions())

    def turn(self) -> None:
        """Begin a new stretch of time: quantiles are of this one and the one before."""
        for counts in self._apis.values():
            counts.turn()


class Timing:
    """One request that is timed, from its frame until its reply is with the kernel. One whose connection ends is forgotten."""

    __slots__ = ("_began", "_connection", "_handled", "_ready", "_sending", "_times")

    def __init__(self, times: ApiTimes, connection: TimedConnection) -> None:
        self._times = times
        self._connection = connection
        self._handled = self._ready = self._sending = 0
        self._began = perf_counter_ns()

    def handled(self) -> None:
        """The handler has returned, and others have their turn."""
        self._handled = perf_counter_ns()
        self._times.local.note((self._handled - self._began) // NS_PER_US)

    def no_reply(self) -> None:
        self._times.remote.note(0)
        self._times.total.note((perf_counter_ns() - self._began) // NS_PER_US)

    def ready(self) -> None:
        """The reply is made."""
        self._ready = now = perf_counter_ns()
        self._times.remote.note(max(now - (self._handled or now), 0) // NS_PER_US)
        connection = self._connection
        if connection.is_closed or connection.timing is not None:
            # Of several replies that leave together one is followed to the end.
            self._times.total.note((now - self._began) // NS_PER_US)
        else:
            connection.timing = self

    def sending(self) -> None:
        """May be called again, while the socket takes no more."""
        if not self._sending:
            self._sending = perf_counter_ns()
            self._times.response_queue.note((self._sending - self._ready) // NS_PER_US)

    def sent(self) -> None:
        now = perf_counter_ns()
        self._times.response_send.note((now - self._sending) // NS_PER_US)
        self._times.total.note((now - self._began) // NS_PER_US)


NoteErrors = Callable[[Any, dict[int, int]], None]


def errors_noter(kind: type[Struct] | None) -> NoteErrors | None:
    """A function that counts the errors in an answer of that kind, wherever it has places for them; None where it has none.
    Compiled, since an answer may have thousands of places, nearly always without an error:

        for a in message.topics or ():
            for b in a.partitions or ():
                if b.error_code:
                    errors[b.error_code] = errors.get(b.error_code, 0) + 1
    """
    lines = _lines(kind, "message", 1) if kind is not None else []
    if not lines:
        return None
    source = "\n".join(["def note_errors(message, errors):", *lines])
    found: dict[str, Any] = {}
    exec(source, found)
    noter: NoteErrors = found["note_errors"]
    return noter


def _lines(kind: type[Struct], name: str, depth: int) -> list[str]:
    pad = " " * depth
    lines: list[str] = []
    if "error_code" in kind.__slots__:
        code = f"{name}.error_code"
        lines.append(f"{pad}if {code}: errors[int({code})] = errors.get(int({code}), 0) + 1")
    for field, type_name, _, _, _, _, nested in kind.FIELDS:
        if type_name == "[]struct" and nested is not None:
            inner = _lines(nested, f"each{depth}", depth + 1)
            if inner:
                lines += [f"{pad}for each{depth} in {name}.{field} or ():", *inner]
    return lines
