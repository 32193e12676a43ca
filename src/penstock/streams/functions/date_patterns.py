"""Java's patterns for dates and times (`yyyy-MM-dd HH:mm:ss.SSSX`), taken apart once and used many times.

A pattern becomes a list of elements. `date_formatting` writes them, `date_parsing` reads them. Text is English.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from penstock.streams.functions.refusals import FunctionFailed

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Sign(StrEnum):
    """When a number has a sign: NONE never; NORMAL when it is negative; EXCEEDS also + when it is wider than the pattern."""

    NONE = "NONE"
    NORMAL = "NORMAL"
    EXCEEDS = "EXCEEDS"


@dataclass(frozen=True, slots=True)
class Element:
    """`kind`: literal, number, reduced (the last two digits of a year), fraction, text, offset, localized, zone, zone_name, pad,
    begin and end of what is optional. `field` is the letter that says what is written.

    `behind`: how many digits the numbers need that stand right behind this one, so that it leaves them."""

    kind: str
    field: str = ""
    text: str = ""
    least: int = 0
    most: int = 0
    sign: Sign = Sign.NONE
    behind: int = 0
    is_fixed: bool = False  # it stands right behind another number, and has exactly `most` digits


_SIMPLE: Final = "dhHkKms"
_COUNTED: Final = "AnN"
_OFFSETS: Final = {
    "X": (("+HHmm", "Z"), ("+HHMM", "Z"), ("+HH:MM", "Z"), ("+HHMMss", "Z"), ("+HH:MM:ss", "Z")),
    "x": (
        ("+HHmm", "+00"),
        ("+HHMM", "+0000"),
        ("+HH:MM", "+00:00"),
        ("+HHMMss", "+0000"),
        ("+HH:MM:ss", "+00:00"),
    ),
}


@lru_cache(1024)
def elements_of(pattern: str) -> tuple[Element, ...]:
    reader = _Reader()
    reader.read(pattern)
    return tuple(reader.elements)


class _Reader:
    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.first_number: int | None = None  # where a row of numbers without anything between them begins
        self.depth = 0

    def read(self, pattern: str) -> None:
        at = 0
        while at < len(pattern):
            character = pattern[at]
            if character.isascii() and character.isalpha():
                end = at
                while pattern[end : end + 1] == character:
                    end += 1
                at = self._letters(pattern, character, end - at, end)
            elif character == "'":
                at = self._quoted(pattern, at)
            elif character in "[]":
                self._optional(character)
                at += 1
            elif character in "{}#":
                raise FunctionFailed(f"Pattern includes reserved character: '{character}'")
            else:
                self._add(Element("literal", text=character))
                at += 1
        if self.depth:
            self.elements += [Element("end")] * self.depth

    def _letters(self, pattern: str, letter: str, count: int, end: int) -> int:
        if letter != "p":
            self._letter(letter, count)
            return end
        following = pattern[end : end + 1]
        if not (following.isascii() and following.isalpha()):
            raise FunctionFailed(f"Pad letter 'p' must be followed by valid pad pattern: {pattern}")
        stop = end
        while pattern[stop : stop + 1] == following:
            stop += 1
        self._add(Element("pad", most=count))
        self.first_number = None
        self._letter(following, stop - end)
        self.first_number = None
        return stop

    def _quoted(self, pattern: str, at: int) -> int:
        end = at + 1
        text = ""
        while True:
            close = pattern.find("'", end)
            if close < 0:
                raise FunctionFailed(f"Pattern ends with an incomplete string literal: {pattern}")
            text += pattern[end:close]
            if pattern[close + 1 : close + 2] != "'":
                break
            text += "'"
            end = close + 2
        self._add(Element("literal", text=text or "'"))
        return close + 1

    def _optional(self, character: str) -> None:
        if character == "[":
            self.depth += 1
        elif self.depth:
            self.depth -= 1
        else:
            raise FunctionFailed("Pattern invalid as it contains ] without previous [")
        self._add(Element("begin" if character == "[" else "end"))

    def _add(self, element: Element) -> None:
        self.first_number = None
        self.elements.append(element)

    def _number(self, element: Element, *, is_fixed: bool) -> None:
        """Numbers side by side share the digits: all but the first have as many as the pattern says."""
        if self.first_number is not None and is_fixed:
            first = self.elements[self.first_number]
            self.elements[self.first_number] = replace(first, behind=first.behind + element.most)
            self.elements.append(replace(element, is_fixed=True))
            return
        self.first_number = len(self.elements)
        self.elements.append(element)

    def _letter(self, letter: str, count: int) -> None:
        if letter in "uy" or (letter == "Y"):
            self._year(letter, count)
        elif letter in "MLQqEec":
            self._named(letter, count)
        elif letter in _SIMPLE or letter in "wWF":
            if count > (1 if letter in "WF" else 2):
                raise FunctionFailed(f"Too many pattern letters: {letter}")
            sign = Sign.NORMAL if count == 1 else Sign.NONE
            self._number(
                Element("number", letter, least=count, most=19 if count == 1 else 2, sign=sign),
                is_fixed=count == 2,
            )
        elif letter == "D":
            if count > 3:
                raise FunctionFailed(f"Too many pattern letters: {letter}")
            most, sign = (19, Sign.NORMAL) if count == 1 else (3, Sign.NONE)
            self._number(Element("number", letter, least=count, most=most, sign=sign), is_fixed=count == 3)
        elif letter in _COUNTED:
            self._number(Element("number", letter, least=count, most=19), is_fixed=False)
        elif letter == "S":
            if count > 9:
                raise FunctionFailed(f"Too many pattern letters: {letter}")
            self._number(Element("fraction", letter, least=count, most=count), is_fixed=True)
        else:
            self._other(letter, count)

    def _year(self, letter: str, count: int) -> None:
        if count == 2:
            self._number(Element("reduced", letter, least=2, most=2), is_fixed=True)
        else:
            sign = Sign.NORMAL if count < 4 else Sign.EXCEEDS
            self._number(Element("number", letter, least=count, most=19, sign=sign), is_fixed=False)

    def _named(self, letter: str, count: int) -> None:
        if count > 5 or (letter == "c" and count == 2):
            raise FunctionFailed(f"Too many pattern letters: {letter}")
        if letter == "E":
            count = max(count, 3)
        if count <= 2:
            sign = Sign.NORMAL if count == 1 else Sign.NONE
            self._number(
                Element("number", letter, least=count, most=19 if count == 1 else 2, sign=sign),
                is_fixed=count == 2,
            )
        else:
            self._add(Element("text", "E" if letter in "ec" else letter.upper(), least=count))

    def _other(self, letter: str, count: int) -> None:
        match letter:
            case "G" if count <= 5:
                self._add(Element("text", "G", least=max(count, 3)))
            case "a" if count == 1:
                self._add(Element("text", "a", least=3))
            case "V" if count == 2:
                self._add(Element("zone"))
            case "z" if count <= 4:
                self._add(Element("zone_name", least=count))
            case "O" if count in (1, 4):
                self._add(Element("localized", least=count))
            case "X" | "x" if count <= 5:
                form, zero = _OFFSETS[letter][count - 1]
                self._add(Element("offset", form, text=zero))
            case "Z" if count <= 3:
                self._add(Element("offset", "+HHMM", text="+0000"))
            case "Z" if count == 4:
                self._add(Element("localized", least=4))
            case "Z" if count == 5:
                self._add(Element("offset", "+HH:MM:ss", text="Z"))
            case _ if letter in "GaVzOXxZ":
                raise FunctionFailed(f"Too many pattern letters: {letter}")
            case _:
                raise FunctionFailed(f"Unknown pattern letter: {letter}")


def names_of(field: str, width: int) -> tuple[str, ...]:
    """The texts of a field, in the order of its values: short, full, or narrow."""
    match field:
        case "M" | "L":
            names: tuple[str, ...] = MONTHS
        case "E":
            names = DAYS
        case "Q":
            if width == 4:
                return ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
            return ("Q1", "Q2", "Q3", "Q4") if width == 3 else ("1", "2", "3", "4")
        case "a":
            return ("AM", "PM")
        case _:
            return {4: ("Before Christ", "Anno Domini"), 5: ("B", "A")}.get(width, ("BC", "AD"))
    if width == 4:
        return names
    return tuple(name[: 3 if width == 3 else 1] for name in names)
