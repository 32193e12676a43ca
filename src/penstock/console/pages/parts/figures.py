"""Figures as people read them ◇. What is not known is a dash."""

from __future__ import annotations

import time
from typing import Final

UNKNOWN: Final = "–"
_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(value: float | None) -> str:
    """
    >>> count(1234567)
    '1,234,567'
    """
    return UNKNOWN if value is None else f"{value:,.0f}"


def size(value: float | None) -> str:
    """
    >>> size(1536), size(10), size(None)
    ('1.5 KiB', '10 B', '–')
    """
    if value is None:
        return UNKNOWN
    left, place = float(value), 0
    while abs(left) >= 1024 and place < len(_BYTES) - 1:
        left, place = left / 1024, place + 1
    return f"{left:.0f} B" if place == 0 else f"{left:.1f} {_BYTES[place]}"


def rate(value: float | None) -> str:
    """Per second.

    >>> rate(0), rate(0.25), rate(12.34), rate(4321)
    ('0', '0.25', '12.3', '4,321')
    """
    if value is None:
        return UNKNOWN
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def duration(seconds: float | None) -> str:
    """
    >>> duration(0), duration(0.4), duration(75), duration(7300), duration(200_000)
    ('0 s', '0.4 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return "0 s" if seconds < 0.05 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    if whole < 86_400:
        return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")
    return f"{whole // 86_400} d" + (f" {whole % 86_400 // 3600} h" if whole % 86_400 // 3600 else "")


def share(part: float | None, whole: float | None) -> str:
    """
    >>> share(1, 3), share(1, 0)
    ('33 %', '–')
    """
    return UNKNOWN if part is None or not whole else f"{100 * part / whole:.0f} %"


def clock(at_s: float) -> str:
    """In the time zone of the console's machine."""
    return time.strftime("%H:%M:%S", time.localtime(at_s))


def moment(at_ms: int | None) -> str:
    if at_ms is None or at_ms < 0:
        return UNKNOWN
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
