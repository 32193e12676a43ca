"""Figures with units, read and written: `50MB/s`, `7d`, `20%`. Decimal units are powers of 1,000, `KiB` and so on of 1,024."""

from __future__ import annotations

import re
from typing import Final

from penstock.client.errors import UserError

_NUMBER: Final = re.compile(r"\s*([0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)\s*([^\s0-9][^0-9]*)?\s*", re.ASCII)
LARGEST: Final = 1e18
_SIZES: Final = {
    "": 1.0,
    "b": 1.0,
    **{f"{letter}b": 1000.0**power for power, letter in enumerate("kmgtp", start=1)},
    **{letter: 1000.0**power for power, letter in enumerate("kmgtp", start=1)},
    **{f"{letter}ib": 1024.0**power for power, letter in enumerate("kmgtp", start=1)},
}
_SPANS: Final = {
    "ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3_600.0, "hour": 3_600.0, "hours": 3_600.0, "d": 86_400.0, "day": 86_400.0, "days": 86_400.0,
    "w": 604_800.0, "week": 604_800.0, "weeks": 604_800.0, "month": 2_592_000.0, "months": 2_592_000.0,
    "y": 31_536_000.0, "year": 31_536_000.0, "years": 31_536_000.0,
}  # fmt: skip
_RECORDS: Final = frozenset({"records", "record", "rec", "r", "messages", "msg"})


def parse_size(text: str) -> float:
    """Bytes: `2TB`, `1 KiB`, `1000`."""
    number, unit = _split(text)
    if unit not in _SIZES:
        raise UserError(f"'{text}' is not a size: write 2TB, 500GB or 1KB")
    return number * _SIZES[unit]


def parse_throughput(text: str, record_bytes: float) -> float:
    """Bytes per second: `50MB/s`, or `20000 records/s` of that size."""
    number, unit = _split(text)
    what, slash, per = unit.partition("/")
    what, per = what.strip(), per.strip()
    if per not in ("s", "sec", "second") if slash else what not in _SIZES:
        raise UserError(f"'{text}' is not a throughput: write 50MB/s or 20000 records/s")
    scale, word = _scaled(what)
    if word in _RECORDS:
        return number * scale * record_bytes
    if what not in _SIZES:
        raise UserError(f"'{text}' is not a throughput: write 50MB/s or 20000 records/s")
    return number * _SIZES[what]


def _scaled(what: str) -> tuple[float, str]:
    """`k records`: a thousand of them."""
    letter, space, word = what.partition(" ")
    return (_SIZES[letter], word.strip()) if space and letter in ("k", "m", "g") else (1.0, what)


def parse_span(text: str) -> float:
    """Seconds: `7d`, `12h`, `30 days`."""
    number, unit = _split(text)
    if unit not in _SPANS:
        raise UserError(f"'{text}' is not a time: write 7d, 12h or 30min")
    return number * _SPANS[unit]


def parse_share(text: str) -> float:
    """0.2: `20%`, `20%/year`, `0.2`."""
    number, unit = _split(text)
    unit = unit.replace(" ", "").removesuffix("/year").removesuffix("/y")
    if unit not in ("%", ""):
        raise UserError(f"'{text}' is not a share: write 20% or 0.2")
    return number / 100 if unit == "%" else number


def _split(text: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UserError(f"'{text}' does not begin with a number: write for example 50MB/s, 7d or 20%")
    number = float(match.group(1).replace(",", "").replace("_", ""))
    if number > LARGEST:
        raise UserError(f"'{text[:20]}…' is too large a figure")
    return number, (match.group(2) or "").strip().lower()


def size(count: float) -> str:
    """`1.5 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} PB" if count < 999.5 else f"{count:,.0f} PB"


def rate(bytes_per_s: float) -> str:
    return f"{size(bytes_per_s)}/s"


def count(number: float) -> str:
    return f"{number:,.0f}"


def span(seconds: float) -> str:
    """`7 days`, `12 h`: the largest unit that is a whole number, or nearly."""
    for unit, each_s in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= each_s:
            return f"{seconds / each_s:.4g} {unit}"
    return f"{seconds:.4g} s"
