"""Texts of records as a page shows them ◇: whatever is in them, one sees what is there, and never more than so much of it."""

from __future__ import annotations

import re
from typing import Final

PREVIEW_CHARACTERS: Final = 240
DETAIL_CHARACTERS: Final = 64_000
INDENT: Final = "  "
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_CONTROL: Final = {
    **{code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}, 0x7F: "\u2421",
    # What turns the direction of a text around, or is not seen, would show something else than what is there.
    **dict.fromkeys((0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF), "\ufffd"),
    **dict.fromkeys(range(128, 160), "�"),
}  # fmt: skip
_SPACES: Final = re.compile(r"\s+")


def visible(text: str) -> str:
    """Control characters as signs. Half of a character becomes U+FFFD."""
    return text.translate(_CONTROL).encode("utf-8", "replace").decode()


def preview(text: str, at_most: int = PREVIEW_CHARACTERS) -> str:
    """On one line, cut."""
    start = _SPACES.sub(" ", text[: at_most * 4]).strip()
    is_cut = len(start) > at_most or len(text) > at_most * 4
    return visible(start[:at_most]) + ("…" if is_cut else "")


def cut(text: str, at_most: int = DETAIL_CHARACTERS) -> tuple[str, bool]:
    """The beginning, and whether there is more."""
    return visible(text[:at_most]), len(text) > at_most


def pretty(text: str, at_most: int = DETAIL_CHARACTERS) -> str:
    """JSON with a line for each entry; numbers and strings stay as they were written. It ends a little behind `at_most`."""
    out: list[str] = []
    length = depth = 0
    previous = ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "}]":
            depth = max(0, depth - 1)
            gap = "" if previous in ("{", "[") else "\n" + INDENT * depth
        elif previous in ("{", "[") or previous == ",":
            gap = "\n" + INDENT * depth
        else:
            gap = " " if previous == ":" else ""
        if token in "{[":
            depth = min(depth + 1, 100)
        out.append(gap + token)
        length += len(gap) + len(token)
        previous = token
        if length > at_most:
            break
    return "".join(out)
