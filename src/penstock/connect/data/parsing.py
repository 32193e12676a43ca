"""Which value a text stands for: what Kafka's `Values.parseString` takes it for. Headers are read so.

    true  12  1.5  2019-08-23  14:34:54.346Z  2019-08-23T14:34:54.346Z  [1,2]  {"a":1}        else it is a string

Numbers get the smallest type that holds them: INT8 to INT64, FLOAT32, FLOAT64, Decimal. Elements of an array have the type
they have in common, or none (`holds_nulls`). Inside arrays and maps strings are quoted; what cannot be read makes a string of
the whole.

The signs "," ":" "[" "]" "{" "}" and the quote part a text into tokens, a backslash takes that from the next one. What stands
behind the first value is not looked at: "1,2" is 1. Time and memory are bounded by the length of the text, also for
1e999999999.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import (
    DATE,
    EPOCH,
    TIME,
    TIMESTAMP,
    decimal,
    time_from_ms,
)
from penstock.connect.data.merging import Merging, aligned, aligned_keys, is_number
from penstock.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    Type,
)
from penstock.connect.data.tokens import Tokens, trimmed
from penstock.connect.errors import DataError

MAX_DEPTH: Final = 200
"""Of arrays and maps in one another."""


class Parsed(NamedTuple):
    schema: Schema | None
    value: Any


NULL: Final = Parsed(None, None)
_TRUE, _FALSE = Parsed(BOOLEAN, True), Parsed(BOOLEAN, False)
_NUMBER: Final = re.compile(r"[+-]?(?:(\d++)(?:\.(\d*+))?|\.(\d++))(?:[eE]([+-]?\d++))?")
_INTEGERS: Final = ((8, INT8), (16, INT16), (32, INT32), (64, INT64))
_MAX_LONG_DIGITS: Final = 19
_SCALES: Final = range(-(1 << 31) + 1, 1 << 31)
_MAX_EXPONENT_DIGITS: Final = 10
_PART: Final = r"[ \t]*(-?\d+)"
_DATE: Final = re.compile(rf"{_PART}-{_PART}-{_PART}")
_TIME: Final = re.compile(rf"{_PART}:{_PART}:{_PART}\.{_PART}Z")
_TIMESTAMP: Final = re.compile(rf"{_PART}-{_PART}-{_PART}T{_PART}:{_PART}:{_PART}\.{_PART}Z")
_GREGORIAN: Final = 2_299_161
"""The Julian day from which on Java counts by the Gregorian calendar: 1582-10-15."""
_EPOCH_DAY: Final = 2_440_588


def parse_text(text: str) -> Parsed:
    """DataError when it is nested too deeply."""
    if not text:
        return Parsed(STRING, text)
    return _Parsing(text).value(is_inside=False) or NULL


class _Parsing:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._depth = 0

    def value(self, *, is_inside: bool) -> Parsed | None:
        """None: null."""
        tokens = self._tokens
        if not tokens.has_next():
            return None
        if is_inside and tokens.take('"'):
            return self._quoted()
        for word, found in (("null", None), ("true", _TRUE), ("false", _FALSE)):
            if self._is_word(word, is_inside):
                return found
        start = tokens.mark()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep()
        try:
            if tokens.take("["):
                return self._array()
            if tokens.take("{"):
                return self._map()
        except _Unreadable:
            tokens.back_to(start)
        finally:
            self._depth -= 1
        token = tokens.next()
        if not trimmed(token):
            return Parsed(STRING, token)
        return self._scalar(trimmed(token), is_inside)

    def _is_word(self, word: str, is_inside: bool) -> bool:
        start = self._tokens.mark()
        if self._tokens.take(word):
            if is_inside or not self._tokens.has_next():
                return True
            self._tokens.back_to(start)
        return False

    def _scalar(self, token: str, is_inside: bool) -> Parsed:
        is_digit = token[0].isdecimal()
        if is_digit:
            found = self._time(token)
            if found is not None:
                return found
        if is_digit or token[0] in "+-":
            number = number_of(token)
            if number is not None:
                return number
        if is_inside:
            raise _Unreadable
        return Parsed(STRING, self._tokens.text)

    def _time(self, token: str) -> Parsed | None:
        """A time has two colons, so it is five tokens."""
        start = self._tokens.mark()
        rest = self._tokens.next_few(4)
        if rest is not None:
            found = time_of(token + rest)
            if found is not None:
                return found
        self._tokens.back_to(start)
        return time_of(token)

    def _quoted(self) -> Parsed:
        parts = []
        while self._tokens.has_next() and not self._tokens.take('"', skips_spaces=False):
            parts.append(self._tokens.next())
        text = "".join(parts)
        return time_of(text) or Parsed(STRING, text)

    def _array(self) -> Parsed:
        tokens, found, merging = self._tokens, list[Any](), Merging()
        while tokens.has_next():
            if tokens.take("]"):
                if merging.common is None:
                    return Parsed(Schema(Type.ARRAY, holds_nulls=True), found)
                schema = Schema(Type.ARRAY, items=merging.common)
                return Parsed(schema, _readable(lambda: aligned(merging.common, found)))
            if tokens.take(","):
                raise _Unreadable
            element = self.value(is_inside=True)
            merging.add(element.schema if element else None)
            found.append(element.value if element else None)
            start = tokens.mark()
            if tokens.take("]"):
                tokens.back_to(start)
            elif not tokens.take(","):
                raise _Unreadable
        raise _Unreadable

    def _map(self) -> Parsed:
        tokens, found = self._tokens, list[tuple[Any, Any]]()
        keys, values = Merging(), Merging()
        while tokens.has_next():
            if tokens.take("}"):
                made: Parsed = _readable(lambda: _map_of(keys.common, values.common, found))
                return made
            if tokens.take(","):
                raise _Unreadable
            key = self.value(is_inside=True)
            if key is None or key.value is None or not tokens.take(":"):
                raise _Unreadable
            value = self.value(is_inside=True)
            found.append((key.value, value.value if value else None))
            tokens.take(",")
            keys.add(key.schema)
            values.add(value.schema if value else None)
        raise _Unreadable


class _Unreadable(Exception):
    """As an array or a map."""


def _too_deep() -> DataError:
    return DataError(f"it is nested more than {MAX_DEPTH} deep")


def _readable(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except DataError:
        raise _Unreadable from None


def _map_of(keys: Schema | None, values: Schema | None, found: list[tuple[Any, Any]]) -> Parsed:
    names = [key for key, _ in found]
    items = [value for _, value in found]
    if keys is not None:
        names = aligned_keys(keys, names)
        if values is not None:
            items = aligned(values, items)
        schema = Schema(Type.MAP, keys=keys, items=values, holds_nulls=values is None)
    else:
        schema = Schema(Type.MAP, holds_nulls=True)
    try:
        return Parsed(schema, dict(zip(names, items, strict=True)))
    except TypeError:
        raise DataError("a map's key is an array or a map, which Python's dicts do not take") from None


def number_of(token: str) -> Parsed | None:
    """None: it is none. Java's BigDecimal reads it, so 1. and +1e5 are numbers, and digits of other scripts count."""
    match = _NUMBER.fullmatch(token)
    if match is None:
        return None
    whole, fraction, only, power = match.groups()
    exponent_text = (power or "0").lstrip("+-").lstrip("0") or "0"
    if len(exponent_text) > _MAX_EXPONENT_DIGITS:
        return None
    exponent = int(power or "0")
    scale = len(fraction or only or "") - exponent
    if scale not in _SCALES:
        return None
    digits = (whole or "") + (fraction or only or "")
    if not digits.isascii():
        digits = "".join(str(int(digit)) for digit in digits)
    sign = "-" if token[0] == "-" else ""
    exact = _exact(sign, digits.lstrip("0"), scale)
    if exact is not None:
        return exact
    number = float(f"{sign}{digits}e{-scale}")
    single = to_single(number)
    if scale != 0 and is_number(single):
        return Parsed(FLOAT32, single)
    if scale != 0 and is_number(number):
        return Parsed(FLOAT64, number)
    return Parsed(decimal(scale), Decimal(f"{sign}{digits.lstrip('0') or '0'}e{-scale}"))


def _exact(sign: str, digits: str, scale: int) -> Parsed | None:
    """A whole number of 64 bits. `digits` have no zeros in front."""
    significant = digits.rstrip("0")
    if not significant:
        return Parsed(INT8, 0)
    zeros = len(digits) - len(significant) - scale
    if zeros < 0 or len(significant) + zeros > _MAX_LONG_DIGITS:
        return None
    number = int(sign + significant + "0" * zeros)
    for bits, schema in _INTEGERS:
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return Parsed(schema, number)
    return None


def time_of(token: str) -> Parsed | None:
    """By the number of signs, and then leniently: 2019-13-45 is a day in February 2020. So does Kafka. The hour 24, which Kafka
    makes a time of, stays text."""
    text = token.replace("\\:", ":")
    try:
        if len(text) == len("HH:mm:ss.SSSZ"):
            return _time_of_day(text)
        if len(text) == len("yyyy-MM-ddTHH:mm:ss.SSSZ"):
            return _timestamp(text)
        if len(text) == len("yyyy-MM-dd"):
            match = _DATE.match(text)
            if match is not None:
                days = _day(*map(int, match.groups()))
                return Parsed(DATE, EPOCH.date() + dt.timedelta(days=days))
    except (OverflowError, DataError):
        return Parsed(STRING, text)  # beyond what Python's dates and times can tell
    return None


def _time_of_day(text: str) -> Parsed | None:
    match = _TIME.match(text)
    if match is None:
        return None
    return Parsed(TIME, time_from_ms(TIME, _ms(*map(int, match.groups()))))


def _timestamp(text: str) -> Parsed | None:
    match = _TIMESTAMP.match(text)
    if match is None:
        return None
    year, month, day, *rest = map(int, match.groups())
    return Parsed(TIMESTAMP, EPOCH + dt.timedelta(days=_day(year, month, day), milliseconds=_ms(*rest)))


def _ms(hours: int, minutes: int, seconds: int, ms: int) -> int:
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms


def _day(year: int, month: int, day: int) -> int:
    """Since 1970. Months and days may be any numbers. Before October 1582 Java counts by the Julian calendar."""
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    shifted, months = year + 4800 - (month < 3), (month - 3) % 12
    days = day + (153 * months + 2) // 5 + 365 * shifted + shifted // 4
    gregorian = days - shifted // 100 + shifted // 400 - 32045
    julian = days - 32083
    return (gregorian if gregorian >= _GREGORIAN else julian) - _EPOCH_DAY
