"""The functions with regular expressions, in Java's syntax."""

from __future__ import annotations

from typing import Final

from penstock.streams.functions import java_regex
from penstock.streams.functions.library.strings import MAX_LENGTH
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar

_REGEX: Final = "REGULAR EXPRESSION"


def _with_group(pattern: str, group: int) -> java_regex.Pattern:
    if group < 0:
        raise FunctionFailed(f"No group {group}")
    return java_regex.compiled(pattern)


@scalar(
    "REGEXP_EXTRACT",
    "STRING pattern, STRING input -> STRING",
    "STRING pattern, STRING input, INTEGER group -> STRING",
    category=_REGEX,
    about="Returns the first substring of the input that matches the given regex pattern, or the group of it.",
)
def regexp_extract(pattern: str, text: str, group: int = 0) -> str | None:
    made = _with_group(pattern, group)
    if group > made.groups:
        return None
    found = made.search(text)
    return None if found is None else found.group(group)


@scalar(
    "REGEXP_EXTRACT_ALL",
    "STRING pattern, STRING input -> ARRAY<STRING>",
    "STRING pattern, STRING input, INTEGER group -> ARRAY<STRING>",
    category=_REGEX,
    about="Returns all substrings of the input that match the given regex pattern, or the group of them.",
)
def regexp_extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    made = _with_group(pattern, group)
    return None if group > made.groups else [found.group(group) for found in made.finditer(text)]


@scalar(
    "REGEXP_REPLACE",
    "STRING str, STRING regexp, STRING newStr -> STRING",
    category=_REGEX,
    about="Replaces all matches of a regexp in a string with a new string.",
)
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    return java_regex.replaced(java_regex.compiled(pattern), text, replacement, MAX_LENGTH)


@scalar(
    "REGEXP_SPLIT_TO_ARRAY",
    "STRING string, STRING regexp -> ARRAY<STRING>",
    category=_REGEX,
    about="Splits a string into an array of substrings by a regexp. An empty one splits into characters.",
)
def regexp_split_to_array(text: str, pattern: str) -> list[str]:
    made = java_regex.compiled(pattern)
    pieces: list[str] = []
    end = 0
    if pattern and not made.is_full_match(""):
        for found in made.finditer(text):
            pieces.append(text[end : found.start()])
            end = found.end()
        return [*pieces, text[end:]]
    for found in made.finditer(
        text
    ):  # as Java's split: no empty piece at the beginning by an empty match, none at the end
        if found.end() == 0:
            continue
        pieces.append(text[end : found.start()])
        end = found.end()
    if not pieces:
        return [text]
    pieces.append(text[end:])
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces
