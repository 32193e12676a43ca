"""The difference between two texts ◇, line by line."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final, NamedTuple

SAME, GONE, NEW, SKIPPED = "same", "gone", "new", "skipped"
MAX_LINES: Final = 3000
AROUND: Final = 4
"""Lines that are the same and are shown before and after a difference."""


class Line(NamedTuple):
    kind: str
    text: str
    old: int | None = None
    new: int | None = None


def difference(old: str, new: str) -> list[Line]:
    """All lines of both, in order; long stretches that are the same are left out.

    >>> [each.kind for each in difference("a\\nb", "a\\nc")]
    ['same', 'gone', 'new']
    """
    before, after = old.splitlines()[:MAX_LINES], new.splitlines()[:MAX_LINES]
    found: list[Line] = []
    for tag, a, a_end, b, b_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            found += _same(
                before,
                a,
                b,
                a_end - a,
                is_first=a == b == 0,
                is_last=a_end == len(before) and b_end == len(after),
            )
            continue
        found += [Line(GONE, before[at], old=at + 1) for at in range(a, a_end)]
        found += [Line(NEW, after[at], new=at + 1) for at in range(b, b_end)]
    return found


def _same(lines: list[str], a: int, b: int, count: int, *, is_first: bool, is_last: bool) -> list[Line]:
    head, tail = (0 if is_first else AROUND), (0 if is_last else AROUND)
    shown = [Line(SAME, lines[a + at], a + at + 1, b + at + 1) for at in range(count)]
    if is_first and is_last:
        return shown
    if count <= head + tail + 1:
        return shown
    left_out = count - head - tail
    return [*shown[:head], Line(SKIPPED, f"… {left_out} …"), *shown[count - tail :]]
