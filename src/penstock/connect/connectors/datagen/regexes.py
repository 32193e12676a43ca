"""Random texts that a regular expression matches."""

from __future__ import annotations

import re
import re._constants as tokens  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from penstock.connect.errors import InvalidConfig

Generate = Callable[[Random], str]
MOST_REPEATS: Final = 10
"""Of what may be repeated without end."""
_PRINTABLE: Final = "".join(map(chr, range(32, 127)))
_CATEGORIES: Final = {
    tokens.CATEGORY_DIGIT: string.digits,
    tokens.CATEGORY_WORD: string.ascii_letters + string.digits + "_",
    tokens.CATEGORY_SPACE: " ",
    tokens.CATEGORY_NOT_DIGIT: string.ascii_letters,
    tokens.CATEGORY_NOT_WORD: " .,-",
    tokens.CATEGORY_NOT_SPACE: string.ascii_letters + string.digits,
}


def texts_like(pattern: str) -> Generate:
    """InvalidConfig for what is no regular expression, or one that looks around."""
    try:
        parsed = parser.parse(pattern)
    except re.error as error:
        raise InvalidConfig(f"{pattern} is no regular expression: {error}") from None
    return _sequence(list(parsed), pattern)


def _sequence(nodes: Sequence[Any], pattern: str) -> Generate:
    parts = [_node(kind, value, pattern) for kind, value in nodes]
    if len(parts) == 1:
        return parts[0]
    return lambda random: "".join([part(random) for part in parts])


def _node(kind: Any, value: Any, pattern: str) -> Generate:
    if kind is tokens.LITERAL:
        text = chr(value)
        return lambda random: text
    if kind is tokens.ANY:
        return lambda random: random.choice(_PRINTABLE)
    if kind is tokens.IN or kind is tokens.NOT_LITERAL:
        characters = _characters(
            value if kind is tokens.IN else [(tokens.NEGATE, None), (tokens.LITERAL, value)]
        )
        return lambda random: random.choice(characters)
    if kind in (tokens.MAX_REPEAT, tokens.MIN_REPEAT, tokens.POSSESSIVE_REPEAT):
        least, most, inner = value
        part, end = _sequence(list(inner), pattern), min(int(most), int(least) + MOST_REPEATS)
        if least == end:
            return lambda random: "".join([part(random) for _ in range(end)])
        return lambda random: "".join([part(random) for _ in range(random.randint(least, end))])
    if kind is tokens.SUBPATTERN:
        return _sequence(list(value[-1]), pattern)
    if kind is tokens.BRANCH:
        branches = [_sequence(list(each), pattern) for each in value[1]]
        return lambda random: random.choice(branches)(random)
    if kind is tokens.AT:
        return lambda random: ""
    raise InvalidConfig(f"{pattern}: {str(kind).lower()} cannot be made at random")


def _characters(items: Sequence[Any]) -> str:
    found: list[str] = []
    is_negated = False
    for kind, value in items:
        if kind is tokens.NEGATE:
            is_negated = True
        elif kind is tokens.LITERAL:
            found.append(chr(value))
        elif kind is tokens.RANGE:
            found += map(chr, range(value[0], value[1] + 1))
        elif kind is tokens.CATEGORY:
            found += _CATEGORIES[value]
    if is_negated:
        left = set(found)
        return "".join(each for each in _PRINTABLE if each not in left)
    return "".join(found)
