"""How many connections the listeners of a broker may have together, and how fast new ones may come.

Where there is no room a listener accepts nothing: clients wait in the kernel's queue. Those who hold their places without having
logged in, where a login is asked for, lose them first. One address may be over its own bounds:
then its connection is closed (`max.connections.per.ip`), or served later (`connection_creation_rate`).
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.security.quotas import SampledRate, Window

if TYPE_CHECKING:
    from penstock.net.listener import Listener, ListenLimits

MOST_ADDRESSES: Final = 10_000
"""Whose rates are remembered; when there are more, those who were quiet longest make room."""
FRESH_SECONDS: Final = 5.0
"""For so long a client that is to log in keeps its place where others want it."""
DROPPED_AT_ONCE: Final = 64
UNLIMITED: Final = 2**31 - 1
_ALL_LISTENERS: Final = ""


def _no_rate(host: str) -> float | None:
    return None


class Admission:
    def __init__(
        self, window: Window | None = None, *, rate_of_address: Callable[[str], float | None] = _no_rate
    ) -> None:
        self._window = window or Window()
        self._rate_of_address = rate_of_address
        self._rates: dict[str, SampledRate] = {}
        self._rates_of_addresses: dict[str, SampledRate] = {}
        self.listeners: list[Listener] = []
        self.by_address: Counter[str] = Counter()

    def has_room(self, listener: "Listener", limits: "ListenLimits") -> bool:
        if listener.connection_count >= limits.max_connections:
            return False
        return limits.is_protected or self._total() < limits.broker_max_connections

    def came(self, listener: "Listener", limits: "ListenLimits", *, now_s: float) -> float:
        """A connection was accepted: for how long no other may be, in seconds."""
        now_ms = int(now_s * 1000)
        waits = []
        rates = [(listener.name, limits.creation_rate)]
        if not limits.is_protected:
            rates.append((_ALL_LISTENERS, limits.broker_creation_rate))
        for name, limit in rates:
            if limit < UNLIMITED:
                rate = self._rates.setdefault(name, SampledRate(self._window))
                waits.append(self._wait_ms(rate, limit, now_ms))
        return max(waits, default=0) / 1000

    def came_from(self, host: str, *, now_s: float) -> float:
        """How long the connection of this address must wait until it is served."""
        limit = self._rate_of_address(host)
        if limit is None:
            return 0.0
        now_ms = int(now_s * 1000)
        rates = self._rates_of_addresses
        if host not in rates and len(rates) >= MOST_ADDRESSES:
            for quiet in sorted(rates, key=lambda each: rates[each].last_ms)[: MOST_ADDRESSES // 4]:
                del rates[quiet]
        return self._wait_ms(rates.setdefault(host, SampledRate(self._window)), limit, now_ms) / 1000

    def make_room(self, limits: "ListenLimits") -> None:
        """Behind a connection that may not wait: the others are over the bound, so the one that is idle longest is closed."""
        if self._total() <= limits.broker_max_connections:
            return
        others = [each for one in self.listeners if not one.is_protected for each in one.connections]
        if others:
            min(others, key=lambda each: each.last_active).close("max.connections is reached")

    def make_room_of_strangers(self, listener: "Listener", limits: "ListenLimits", *, now_s: float) -> bool:
        """Whether any connection was closed whose client had time to log in, and has not. Where the listener's own bound is
        reached only its own connections are looked at."""
        is_own = listener.connection_count >= limits.max_connections
        before_s = now_s - FRESH_SECONDS
        late = [
            each
            for one in ([listener] if is_own else self.listeners)
            for each in one.connections
            if each.is_stranger and each.since <= before_s
        ]
        for connection in sorted(late, key=lambda each: each.since)[:DROPPED_AT_ONCE]:
            connection.close("it has not logged in, and others want its place")
        return bool(late)

    def freed(self) -> None:
        for listener in self.listeners:
            listener.look_for_room()

    def _wait_ms(self, rate: SampledRate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms=now_ms)
        most_ms = self._window.whole_ms
        return rate.throttle_ms(limit, now_ms=now_ms, most_ms=most_ms) if limit > 0 else most_ms

    def _total(self) -> int:
        return sum(listener.connection_count for listener in self.listeners)
