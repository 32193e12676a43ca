"""Texts as a page shows them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.messages.texts import cut, pretty, preview, visible

documents: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(documents)
def test_indented_json_says_the_same(document: Any) -> None:
    assert json.loads(pretty(json.dumps(document))) == document


@given(documents.filter(lambda each: isinstance(each, dict | list) and bool(each)))
def test_indented_json_looks_as_pythons(document: Any) -> None:
    assert pretty(json.dumps(document)) == json.dumps(document, indent=2)


def test_numbers_stay_as_they_were_written() -> None:
    assert pretty('{"a":1.10,"b":12345678901234567890}') == '{\n  "a": 1.10,\n  "b": 12345678901234567890\n}'


def test_what_is_hidden_in_a_text_is_seen() -> None:
    assert visible("a\x00b\x1b[31m\u202ec\u200bd") == "a\u2400b\u241b[31m\ufffdc\ufffdd"
    assert visible("tab\tand\nline") == "tab\tand\nline"
    assert visible("half \ud800") == "half ?"


def test_a_preview_is_one_short_line() -> None:
    assert preview("a\n  b\t c") == "a b c"
    assert len(preview("x" * 100_000)) == 241
    assert preview("x" * 240) == "x" * 240


@given(st.text(max_size=2000))
def test_a_preview_never_breaks_a_line(text: str) -> None:
    assert "\n" not in preview(text)
    assert len(preview(text)) <= 241


def test_a_cut_text_says_so() -> None:
    assert cut("abc", 2) == ("ab", True)
    assert cut("abc", 3) == ("abc", False)


def test_ten_thousand_columns_are_indented_only_as_far_as_they_are_shown() -> None:
    wide = json.dumps({f"column_{n}": n for n in range(10_000)})
    assert len(pretty(wide, 1000)) < 1100
