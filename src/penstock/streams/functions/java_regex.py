"""Java's regular expressions.

Most are RE2's with other spellings, and RE2 needs linear time. What RE2 does not have (looking ahead and behind, references back,
possessive quantifiers, intersections of classes) runs on Python's engine, whose time can explode: only expressions whose worst
case is polynomial are taken, and only for texts that are short enough for it. Anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from penstock.streams.functions.java_regex_classes import OnlyBacktracking
from penstock.streams.functions.java_regex_syntax import Translator
from penstock.streams.functions.refusals import FunctionFailed

MAX_PATTERN: Final = 10_000
MAX_STEPS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Pattern:
    compiled: Any
    groups: int
    names: dict[str, int]
    is_backtracking: bool
    degree: int
    beyond_ascii: Pattern | None = None  # where RE2 knows only the words of ASCII, and the text has others

    def finditer(self, text: str) -> Iterator[Any]:
        """As Java's `find` goes on: behind an empty match one character further."""
        if self.beyond_ascii is not None and not text.isascii():
            yield from self.beyond_ascii.finditer(text)
            return
        self._check(text)
        if self.is_backtracking:
            yield from self._steps(text)
            return
        last: tuple[int, int] | None = None
        for match in self.compiled.finditer(text):
            if match.span() != last:
                last = match.span()
                yield match

    def _steps(self, text: str) -> Iterator[Any]:
        at = 0
        while at <= len(text) and (match := self.compiled.search(text, at)) is not None:
            yield match
            at = match.end() + (match.start() == match.end())

    def search(self, text: str) -> Any:
        if self.beyond_ascii is not None and not text.isascii():
            return self.beyond_ascii.search(text)
        self._check(text)
        return self.compiled.search(text)

    def is_full_match(self, text: str) -> bool:
        self._check(text)
        return self.compiled.fullmatch(text) is not None

    def _check(self, text: str) -> None:
        if self.is_backtracking and max(len(text), 2) ** self.degree > MAX_STEPS:
            raise FunctionFailed(
                "This regular expression is not taken for a text of this length: it could run for too long"
            )


@lru_cache(512)
def compiled(pattern: str) -> Pattern:
    if len(pattern) > MAX_PATTERN:
        raise FunctionFailed(f"A regular expression has no more than {MAX_PATTERN} characters")
    try:
        return _for_re2(pattern)
    except OnlyBacktracking:
        return _for_python(pattern)


def _for_re2(pattern: str) -> Pattern:
    translator = Translator(pattern, for_backtracking=False)
    text = translator.translated()
    options = re2.Options()
    options.log_errors = False
    try:
        made = re2.compile(text, options)
    except re2.error as error:
        raise OnlyBacktracking(str(error)) from None
    return Pattern(made, translator.count, translator.names, False, 1, _twin(pattern))


def _twin(pattern: str) -> Pattern | None:
    """For the ends of words: on Python's engine, if it may run there."""
    if "\\b" not in pattern.lower():
        return None
    try:
        return _for_python(pattern)
    except FunctionFailed:
        return None


def _for_python(pattern: str) -> Pattern:
    translator = Translator(pattern, for_backtracking=True)
    text = translator.translated()
    try:
        made = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise translator.bad(str(error)) from None
    return Pattern(made, translator.count, translator.names, True, translator.degree)


def replaced(pattern: Pattern, text: str, replacement: str, limit: int) -> str:
    """String.replaceAll: `$1` and `${name}` are groups, a backslash takes the meaning of what follows."""
    parts = _replacement(pattern, replacement)
    pieces: list[str] = []
    end = size = 0
    for match in pattern.finditer(text):
        pieces.append(text[end : match.start()])
        for part in parts:
            piece = part if isinstance(part, str) else match.group(part) or ""
            pieces.append(piece)
            size += len(piece)
        if size > limit:
            raise FunctionFailed(f"The result is longer than {limit}")
        end = match.end()
    return "".join([*pieces, text[end:]])


@lru_cache(512)
def _replacement_parts(
    groups: int, names: tuple[tuple[str, int], ...], replacement: str
) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        at += 1
        if character == "\\":
            if at == len(replacement):
                raise FunctionFailed("character to be escaped is missing")
            parts.append(replacement[at])
            at += 1
        elif character != "$":
            parts.append(character)
        elif replacement[at : at + 1] == "{":
            name = replacement[at + 1 : replacement.find("}", at)]
            if name not in dict(names):
                raise FunctionFailed(f"No group with name {{{name}}}")
            parts.append(dict(names)[name])
            at += len(name) + 2
        else:
            if not replacement[at : at + 1].isdigit():
                raise FunctionFailed("Illegal group reference")
            number = int(replacement[at])
            at += 1
            while replacement[at : at + 1].isdigit() and number * 10 + int(replacement[at]) <= groups:
                number = number * 10 + int(replacement[at])
                at += 1
            if number > groups:
                raise FunctionFailed(f"No group {number}")
            parts.append(number)
    return tuple(parts)


def _replacement(pattern: Pattern, replacement: str) -> tuple[str | int, ...]:
    return _replacement_parts(pattern.groups, tuple(pattern.names.items()), replacement)
