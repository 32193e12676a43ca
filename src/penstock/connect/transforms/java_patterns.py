"""Java's regular expressions over names of topics, and what Java's `replaceFirst` makes of them.

Most patterns run on RE2, which needs linear time. What RE2 does not have (looking ahead and behind, references back, possessive
quantifiers) runs on Python's engine, whose time can explode: a repetition of what can itself match in several ways is refused
there, and so is a name that is too long for the pattern. Classes in classes and their intersections are refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

_MAX_PATTERN: Final = 10_000
_MAX_STEPS: Final = 20_000_000
_MAX_NAMES: Final = 10_000
_POSIX: Final = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": r"\x00-\x7F", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "Graph": "!-~", "Print": " -~", "Blank": r" \t", "Cntrl": r"\x00-\x1F\x7F", "XDigit": "0-9a-fA-F",
    "Space": r"\t-\r ",
}  # fmt: skip
_PROPERTY: Final = re.compile(r"([pP])\{(?:Is)?(\w+)\}")
_NAMED: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_REPETITION: Final = re.compile(r"[*+?]|\{\d+(,\d*)?\}")


class JavaPattern:
    __slots__ = ("_compiled", "_degree", "groups", "names")

    def __init__(self, compiled: Any, degree: int | None) -> None:
        """`degree`: with which power of its length the time for a text grows. None: it is linear."""
        self._compiled = compiled
        self._degree = degree
        self.groups: int = compiled.groups
        self.names: dict[str, int] = dict(compiled.groupindex)

    def is_full_match(self, text: str) -> bool:
        """ValueError for a text that would take too long."""
        self._check(text)
        return self._compiled.fullmatch(text) is not None

    def search(self, text: str) -> Any:
        self._check(text)
        return self._compiled.search(text)

    def _check(self, text: str) -> None:
        if self._degree is not None and max(len(text), 2) ** self._degree > _MAX_STEPS:
            raise ValueError(
                f"This regular expression is not taken for {len(text)} characters: it could run for too long"
            )


class Renaming:
    """A pattern with a replacement: what it makes of a name, or None for a name that does not match as a whole."""

    __slots__ = ("_known", "_parts", "_pattern", "_problem")

    def __init__(self, pattern: JavaPattern, replacement: str) -> None:
        self._pattern = pattern
        self._parts: list[str | int] = []
        self._problem: str | None = None
        try:
            self._parts = _replacement_parts(pattern, replacement)
        except ValueError as error:  # as in Java: told when a name matches
            self._problem = str(error)
        self._known: dict[str, str | None] = {}

    def __call__(self, name: str) -> str | None:
        """ValueError for a replacement that is wrong, or a name that would take too long."""
        known = self._known
        if name in known:
            return known[name]
        made = self._renamed(name)
        if len(known) >= _MAX_NAMES:
            known.clear()
        known[name] = made
        return made

    def _renamed(self, name: str) -> str | None:
        if not self._pattern.is_full_match(name):
            return None
        if self._problem is not None:
            raise ValueError(self._problem)
        # Not the match of the whole name: the first that is found, which may be shorter.
        match = self._pattern.search(name)
        middle = "".join(part if isinstance(part, str) else match.group(part) or "" for part in self._parts)
        return f"{name[: match.start()]}{middle}{name[match.end() :]}"


@lru_cache(256)
def java_pattern(text: str) -> JavaPattern:
    """ValueError, with the reason."""
    if len(text) > _MAX_PATTERN:
        raise ValueError(f"A regular expression has no more than {_MAX_PATTERN} characters")
    reader = _Reader(text)
    translated = reader.translated()
    options = re2.Options()
    options.log_errors = False
    try:
        return JavaPattern(re2.compile(translated, options), None)
    except re2.error:
        pass
    try:
        compiled = re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{error} near index {getattr(error, 'pos', None) or 0}\n{text}") from None
    if reader.can_explode:
        raise ValueError(
            "a repetition of what can itself match in several ways could run for too long together with what only Java has\n"
            + text
        )
    return JavaPattern(compiled, reader.degree)


class _Reader:
    """Goes over a pattern once: writes it as RE2 and Python take it, and sees what a backtracking engine would do with it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.degree = 1
        self.can_explode = False

    def translated(self) -> str:
        made: list[str] = []
        ambiguous = [False]  # of each open group: can it match in several ways?
        closed = False  # of what has just been read
        while self._at < len(self._text):
            character = self._text[self._at]
            repetition = _REPETITION.match(self._text, self._at)
            if character == "\\":
                made.append(self._escape())
                closed = False
            elif character == "[":
                made.append(self._class())
                closed = False
            elif character == "(":
                made.append(self._opening())
                ambiguous.append(False)
                closed = False
            elif character == ")":
                made.append(")")
                self._at += 1
                closed = ambiguous.pop() if len(ambiguous) > 1 else False
                ambiguous[-1] |= closed
            elif repetition is not None and made:
                several = repetition.group() != "?" and not re.fullmatch(r"\{[01]\}", repetition.group())
                self.can_explode |= closed and several
                if repetition.group() in "*+" or repetition.group().endswith(",}"):
                    self.degree += 1
                    ambiguous[-1] = True
                made.append(self._repetition(repetition))
                closed = False
            else:
                ambiguous[-1] |= character == "|"
                made.append(character)
                self._at += 1
                closed = False
        return "".join(made)

    def _repetition(self, found: re.Match[str]) -> str:
        """With the mark behind it that makes it lazy or possessive."""
        end = found.end() + (self._text[found.end() : found.end() + 1] in ("?", "+"))
        self._at = end
        return self._text[found.start() : end]

    def _opening(self) -> str:
        named = _NAMED.match(self._text, self._at)
        if named is not None:
            self._at = named.end()
            return f"(?P<{named.group(1)}>"
        for start in ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "("):
            if self._text.startswith(start, self._at):
                break
        self._at += len(start)
        return start

    def _escape(self) -> str:
        self._at += 1
        letter = self._text[self._at : self._at + 1]
        if letter == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at + 1 : end if end >= 0 else None]
            self._at = len(self._text) if end < 0 else end + 2
            return re.escape(quoted)
        found = _PROPERTY.match(self._text, self._at)
        if found is not None and found.group(2) in _POSIX:
            self._at = found.end()
            return f"[{'^' if found.group(1) == 'P' else ''}{_POSIX[found.group(2)]}]"
        back = re.compile(r"k<(\w+)>").match(self._text, self._at)
        if back is not None:
            self._at = back.end()
            return f"(?P={back.group(1)})"
        self._at += 1
        return {"h": r"[ \t]", "R": r"(?:\r\n|[\n-\r])", "e": r"\x1b", "Z": r"\z"}.get(letter, "\\" + letter)

    def _class(self) -> str:
        """[…] to its end."""
        made = "["
        self._at += 1
        for start in ("^]", "^", "]"):
            if self._text.startswith(start, self._at):
                made += start.replace("]", r"\]")
                self._at += len(start)
                break
        while self._text[self._at : self._at + 1] not in ("]", ""):
            if self._text.startswith(("[", "&&"), self._at):
                raise ValueError(f"classes in classes and their intersections are not taken\n{self._text}")
            if self._text[self._at] != "\\":
                made += self._text[self._at]
                self._at += 1
                continue
            inside = self._escape()
            if inside.startswith("[^"):
                raise ValueError(f"inverted properties in classes are not taken\n{self._text}")
            made += inside[1:-1] if inside.startswith("[") else inside
        self._at += 1
        return made + "]"


def _replacement_parts(pattern: JavaPattern, text: str) -> list[str | int]:
    """Texts and numbers of groups. ValueError, in Java's words."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\":
            if at == len(text):
                raise ValueError("character to be escaped is missing")
            parts.append(text[at])
            at += 1
        elif character != "$":
            parts.append(character)
        elif text[at : at + 1] == "{":
            end = text.find("}", at)
            name = text[at + 1 : end]
            if end < 0 or name not in pattern.names:
                raise ValueError(f"No group with name {{{name}}}")
            parts.append(pattern.names[name])
            at = end + 1
        else:
            number, at = _group_number(pattern, text, at)
            parts.append(number)
    return parts


def _group_number(pattern: JavaPattern, text: str, at: int) -> tuple[int, int]:
    """As many digits as there is a group for."""
    if not text[at : at + 1].isdecimal():
        raise ValueError("Illegal group reference")
    number = int(text[at])
    at += 1
    while text[at : at + 1].isdecimal() and number * 10 + int(text[at]) <= pattern.groups:
        number = number * 10 + int(text[at])
        at += 1
    if number > pattern.groups:
        raise ValueError(f"No group {number}")
    return number, at
