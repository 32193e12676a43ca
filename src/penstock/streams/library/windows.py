"""Windows of time: `tumbling(minutes=5)`, `hopping(hours=1, advance=timedelta(minutes=5))`, `session(minutes=30)`,
`sliding(minutes=5)`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

from penstock.streams.library.failures import TopologyError
from penstock.streams.plan.sources import Window, WindowKind

Duration = timedelta | int | str
_MILLISECOND: Final = timedelta(milliseconds=1)
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXT: Final = re.compile(
    r"\s*(\d+)\s*(ms|s|m|h|d|milliseconds?|seconds?|minutes?|hours?|days?)\s*", re.IGNORECASE
)


def duration_ms(given: Any, what: str, *, least: int = 0) -> int:
    """A timedelta, milliseconds, or a text as "5 minutes" or "5m"."""
    if isinstance(given, timedelta):
        found = given // _MILLISECOND
    elif isinstance(given, int) and not isinstance(given, bool):
        found = given
    elif isinstance(given, str) and (match := _TEXT.fullmatch(given)) is not None:
        unit = match[2].lower()
        found = int(match[1]) * (1 if unit == "ms" or unit.startswith("milli") else _UNITS_MS[unit[0]])
    else:
        raise TopologyError(
            f"{what}: a timedelta, a number of milliseconds, or a text as '5 minutes', not {given!r}"
        )
    if found < least:
        raise TopologyError(f"{what}: at least {least} ms, not {found}")
    return found


def tumbling(
    size: Duration | None = None,
    *,
    grace: Duration | None = None,
    retention: Duration | None = None,
    **units: float,
) -> Window:
    """Each row is in one window. `grace`: how late a row may come after the window's end; without it as late as 24
    hours after the
    window's start. `retention`: how long windows can be asked for."""
    return _window(WindowKind.TUMBLING, _size(size, units, "the size"), 0, grace, retention)


def hopping(
    size: Duration | None = None,
    *,
    advance: Duration,
    grace: Duration | None = None,
    retention: Duration | None = None,
    **units: float,
) -> Window:
    """A window begins each `advance`, and they overlap."""
    size_ms = _size(size, units, "the size")
    advance_ms = duration_ms(advance, "the advance", least=1)
    if advance_ms > size_ms:
        raise TopologyError(f"the advance of {advance_ms} ms is more than the size of {size_ms} ms")
    return _window(WindowKind.HOPPING, size_ms, advance_ms, grace, retention)


def session(
    gap: Duration | None = None,
    *,
    grace: Duration | None = None,
    retention: Duration | None = None,
    **units: float,
) -> Window:
    """Rows of a key that lie no farther apart than `gap` are one session."""
    return _window(WindowKind.SESSION, _size(gap, units, "the gap"), 0, grace, retention)


def sliding(
    difference: Duration | None = None,
    *,
    grace: Duration | None = None,
    retention: Duration | None = None,
    **units: float,
) -> Window:
    """Rows of a key that lie no farther apart than `difference` are in a window together: one that ends with each row, and one
    that begins behind it. Both ends belong to a window."""
    return _window(WindowKind.SLIDING, _size(difference, units, "the difference"), 0, grace, retention)


def _size(given: Duration | None, units: dict[str, float], what: str) -> int:
    if (given is None) == (not units):
        raise TopologyError(f"{what}: give it once, as a duration or as minutes=5 and the like")
    if given is None:
        try:
            given = timedelta(**units)
        except TypeError:
            raise TopologyError(
                f"{what}: minutes=, hours= and what else a timedelta has, not {', '.join(units)}"
            ) from None
    return duration_ms(given, what, least=1)


def _window(
    kind: WindowKind, size_ms: int, advance_ms: int, grace: Duration | None, retention: Duration | None
) -> Window:
    grace_ms = None if grace is None else duration_ms(grace, "the grace period")
    retention_ms = None if retention is None else duration_ms(retention, "the retention")
    if retention_ms is not None and retention_ms < size_ms + (grace_ms or 0):
        raise TopologyError(
            f"the retention of {retention_ms} ms is less than the window with its grace period: {size_ms + (grace_ms or 0)} ms"
        )
    return Window(kind, size_ms, advance_ms, grace_ms, retention_ms)
