"""The difference between two texts."""

from __future__ import annotations

from penstock.console.pages.parts.difference import AROUND, GONE, NEW, SAME, SKIPPED, difference


def test_lines_have_the_numbers_of_both_texts() -> None:
    assert [tuple(each) for each in difference("a\nb\nc", "a\nx\nc")] == [
        (SAME, "a", 1, 1), (GONE, "b", 2, None), (NEW, "x", None, 2), (SAME, "c", 3, 3)
    ]  # fmt: skip


def test_equal_texts_are_shown_whole() -> None:
    text = "\n".join(map(str, range(50)))
    assert {each.kind for each in difference(text, text)} == {SAME}


def test_a_long_stretch_that_is_the_same_is_left_out() -> None:
    text = "\n".join(map(str, range(50)))
    found = difference(text, "new\n" + text + "\nlast")
    assert [each.kind for each in found] == [NEW, *[SAME] * AROUND, SKIPPED, *[SAME] * AROUND, NEW]
