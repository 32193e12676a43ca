"""Time zones by their names, as Java's ZoneId takes them: regions, offsets such as +0200, and UTC+2."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from penstock.streams.functions.refusals import FunctionFailed

_OFFSET: Final = re.compile(r"([+-])(\d{1,2})(?::(\d{2})(?::(\d{2}))?|(\d{2})(\d{2})?)?", re.ASCII)
_REGION: Final = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_EPOCH: Final = datetime(1970, 1, 1)
_SHORT_NAMES: Final = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "PT": "America/Los_Angeles",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "EET": "Europe/Bucharest",
    "EEST": "Europe/Bucharest",
    "BST": "Europe/London",
    "JST": "Asia/Tokyo",
    "IST": "Asia/Kolkata",
}


class Zone:
    """`name` is as Java's ZoneId.getId gives it. Offsets are in seconds."""

    def __init__(self, name: str, offset: int | None, rules: zoneinfo.ZoneInfo | None = None) -> None:
        self.name = name
        self.fixed = offset
        self.rules = rules

    def offset_at(self, epoch_ms: int) -> int:
        if self.rules is None:
            return self.fixed or 0
        return self._seconds(
            (_EPOCH + timedelta(milliseconds=_bounded(epoch_ms))).astimezone(self.rules).utcoffset()
        )

    def offset_of_local(self, local_ms: int) -> int:
        """Of what the clock on the wall shows. What it shows twice is meant the first time; what it never shows is as far behind
        the change as it says."""
        if self.rules is None:
            return self.fixed or 0
        local = _PLAIN_EPOCH + timedelta(milliseconds=_bounded(local_ms))
        return self._seconds(local.replace(tzinfo=self.rules).utcoffset())

    def short_name(self, epoch_ms: int) -> str:
        if self.rules is None:
            return self.name
        return (_EPOCH + timedelta(milliseconds=_bounded(epoch_ms))).astimezone(
            self.rules
        ).tzname() or self.name

    @staticmethod
    def _seconds(offset: timedelta | None) -> int:
        return 0 if offset is None else int(offset.total_seconds())


def _bounded(milliseconds: int) -> int:
    """Python's dates end with the year 9999; the rules of zones do not change any more there."""
    return max(-62_000_000_000_000, min(milliseconds, 253_000_000_000_000))


UTC_ZONE: Final = Zone("GMT", 0)


@lru_cache(512)
def zone_of(name: str) -> Zone:
    if name == "Z":
        return Zone("Z", 0)
    if name[:1] in ("+", "-"):
        offset = _offset(name)
        return Zone(offset_text(offset), offset)
    for prefix in ("UTC", "GMT", "UT"):
        if name == prefix:
            return Zone(name, 0)
        if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in ("+", "-"):
            offset = _offset(name[len(prefix) :])
            return Zone(prefix + (offset_text(offset) if offset else ""), offset)
    if _REGION.fullmatch(name) is None or ".." in name:
        raise FunctionFailed(f"Invalid ID for region-based ZoneId, invalid format: {name[:100]}")
    try:
        return Zone(name, None, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
        raise FunctionFailed(f"Unknown time-zone ID: {name[:100]}") from None


def zone_of_short_name(name: str) -> Zone | None:
    region = _SHORT_NAMES.get(name.upper())
    return None if region is None else zone_of(region)


def _offset(text: str) -> int:
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise FunctionFailed(f"Invalid ID for ZoneOffset, invalid format: {text[:100]}")
    hours, minutes = int(found.group(2)), int(found.group(3) or found.group(5) or 0)
    seconds = int(found.group(4) or found.group(6) or 0)
    total = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise FunctionFailed("Zone offset not in valid range: -18:00 to +18:00")
    return -total if found.group(1) == "-" else total


def offset_text(seconds: int, form: str = "+HH:MM:ss", zero: str = "Z") -> str:
    """By Java's forms: HH and MM always, mm and ss only where they are not zero; a colon between or not."""
    if not seconds:
        return zero
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    hours, minutes, last = rest // 3600, rest // 60 % 60, rest % 60
    colon = ":" if ":" in form else ""
    text = f"{sign}{hours:02d}"
    if "MM" in form or ("mm" in form and (minutes or last)):
        text += f"{colon}{minutes:02d}"
    if "SS" in form or ("ss" in form and last):
        text += f"{colon}{last:02d}"
    return text
