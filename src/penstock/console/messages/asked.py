"""What a visitor asks for on the page of messages ◇: all fields of the bar above the table, to and from the query of an address.

So a search has an address that can be kept and sent to others, and a download is asked for with the same words.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from penstock.client.errors import UserError
from penstock.console.messages.decode import Format, format_of
from penstock.console.messages.model import Search
from penstock.console.messages.wanted import Part, Wanted

NEWEST, OLDEST, OFFSET, TIME, LIVE = "newest", "oldest", "offset", "time", "live"
MODES: Final = (NEWEST, OLDEST, OFFSET, TIME, LIVE)
TEXT, PATTERN, PATH = "text", "pattern", "json"
KINDS: Final = (TEXT, PATTERN, PATH)
LIMITS: Final = (50, 100, 500, 1000, 5000)
MAX_PARTITIONS: Final = 100_000
UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """All as the visitor wrote it; `search` says what is wrong with it."""

    mode: str = NEWEST
    start: str = ""
    """The offset or the time of the modes that begin there."""
    until: str = ""
    """A time: records before it."""
    partitions: str = ""
    limit: int = 100
    text: str = ""
    kind: str = TEXT
    part: str = Part.ANYWHERE.value
    ignores_case: bool = False
    key: str = ""
    header: str = ""
    nulls: bool = False
    uncommitted: bool = False
    control: bool = False
    key_format: str = Format.AUTO.value
    value_format: str = Format.AUTO.value

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Asked:
        """What an address says; what it has no word for, or a wrong one, is as usual."""
        found: dict[str, Any] = {}
        for each in fields(cls):
            said = query.get(each.name)
            if said is None:
                continue
            if isinstance(each.default, bool):
                found[each.name] = said in ("1", "true")
            elif isinstance(each.default, int):
                found[each.name] = int(said) if said.isdecimal() and len(said) < 9 else each.default
            else:
                found[each.name] = said[:4000]
        if found.get("mode", NEWEST) not in MODES:
            del found["mode"]
        if found.get("kind", TEXT) not in KINDS:
            del found["kind"]
        return cls(**found)

    def query(self) -> dict[str, str]:
        """Only what is not as usual."""
        return {
            each.name: str(int(value)) if isinstance(value, bool) else str(value)
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    @property
    def is_live(self) -> bool:
        return self.mode == LIVE

    @property
    def formats_are_chosen(self) -> bool:
        return (self.key_format, self.value_format) != (Format.AUTO.value, Format.AUTO.value)

    def formats(self) -> tuple[Format, Format]:
        """Of keys and of values."""
        return format_of(self.key_format), format_of(self.value_format)

    def wanted(self) -> Wanted:
        """UserError."""
        text = self.text.strip() if self.kind == PATH else self.text
        return Wanted(
            text="" if self.kind == PATH else text,
            is_pattern=self.kind == PATTERN,
            ignores_case=self.ignores_case,
            part=_part(self.part),
            key=self.key,
            header=self.header.strip(),
            path=text if self.kind == PATH else "",
            only_nulls=self.nulls,
        )

    def search(self, topic: str, *, now_s: float | None = None) -> Search:
        """UserError with what is wrong, before any broker is asked."""
        start: int | str | datetime = "earliest"
        if self.mode == OFFSET:
            start = _offset(self.start)
        elif self.mode == TIME:
            start = parse_time(self.start, now_s=now_s)
        return Search(
            topic=topic,
            partitions=parse_partitions(self.partitions),
            start=start,
            end=parse_time(self.until, now_s=now_s) if self.until.strip() and not self.is_live else "latest",
            newest_first=self.mode in (NEWEST, LIVE),
            limit=self.limit,
            committed=not self.uncommitted,
            with_control=self.control,
            wanted=self.wanted(),
        )


def parse_partitions(text: str) -> tuple[int, ...] | None:
    """None for all. UserError.

    >>> parse_partitions("0, 3-5")
    (0, 3, 4, 5)
    """
    if not text.strip():
        return None
    found: set[int] = set()
    for part in text.split(","):
        said = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part)
        if said is None or int(said[2] or said[1]) >= MAX_PARTITIONS:
            raise UserError(f"partitions are numbers such as 0, 3-5; '{part.strip()[:40]}' is none")
        found.update(range(int(said[1]), int(said[2] or said[1]) + 1))
    if not found:
        raise UserError(f"partitions are numbers such as 0, 3-5, and '{text[:40]}' names none")
    return tuple(sorted(found))


def parse_time(text: str, *, now_s: float | None = None) -> datetime:
    """`10m` (ago), a date with or without a time (of the console's machine where no zone is said), or milliseconds since 1970.
    UserError."""
    said = text.strip()
    ago = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*(ms|s|min|m|h|d)(?:\s+ago)?", said)
    try:
        if ago is not None:
            now_s = time.time() if now_s is None else now_s
            return datetime.fromtimestamp(max(0.0, now_s - float(ago[1]) * UNITS_S[ago[2]]), UTC)
        if said.isdecimal() and len(said) > 8:
            return datetime.fromtimestamp(int(said) / 1000, UTC)
        return datetime.fromisoformat(said).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise UserError(
            f"'{said[:40]}' is not a time: write 10m (ago), 2026-11-16 08:00, or milliseconds since 1970"
        ) from None


def _offset(text: str) -> int:
    said = text.strip().replace(",", "")
    if not said.isdecimal() or len(said) > 18:
        raise UserError(f"an offset is a number from 0 on, not '{said[:40]}'")
    return int(said)


def _part(text: str) -> Part:
    try:
        return Part(text)
    except ValueError:
        return Part.ANYWHERE
