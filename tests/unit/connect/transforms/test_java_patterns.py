"""Java's patterns over names of topics."""

from __future__ import annotations

import pytest

from penstock.connect.transforms.java_patterns import Renaming, java_pattern


@pytest.mark.parametrize(
    ("pattern", "replacement", "name", "renamed"),
    [
        (r"(.*)\.(.*)", "$2-$1", "db.orders", "orders-db"),
        (r"(?<db>[^.]+)\..*", "${db}", "db.orders", "db"),
        (r"(?!internal).*", "x", "internal-a", None),
        (r"(?!internal).*", "x", "orders", "x"),
        (r"orders", "x", "orders-1", None),
        (r"a|aab", "X", "aab", "Xab"),
        (r"\Qa.b\E", r"\$1", "a.b", "$1"),
        (r"\p{Alpha}+", "y", "abc", "y"),
        (r"(\w)\1", "same", "aa", "same"),
        (r"(.)", "$12", "a", "a2"),
        (r"(a)|(b)", "[$1$2]", "b", "[b]"),
        (r"(ab){2}", "t", "abab", "t"),
    ],
)
def test_a_name_that_matches_as_a_whole_gets_the_first_match_replaced(
    pattern: str, replacement: str, name: str, renamed: str | None
) -> None:
    assert Renaming(java_pattern(pattern), replacement)(name) == renamed


@pytest.mark.parametrize(
    "pattern", ["(a", "*", "a)", "[a-z&&[^b]]", "[a[b]]", r"(?=a)(a+)+b", r"(?!x)(a|ab)*c", "a" * 20_000]
)
def test_a_pattern_that_is_none_or_could_explode_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        java_pattern(pattern)


def test_what_would_explode_in_java_takes_linear_time_here() -> None:
    assert not java_pattern("(a+)+b").is_full_match("a" * 5_000)


def test_a_text_that_is_too_long_for_a_backtracking_pattern_is_refused() -> None:
    slow = java_pattern("(?!x).*a.*b.*c")
    assert slow.is_full_match("xabc") is False
    with pytest.raises(ValueError, match="too long"):
        slow.is_full_match("a" * 1_000)


@pytest.mark.parametrize("replacement", ["$2", "${no}", "$", "\\"])
def test_a_wrong_replacement_is_told_when_a_name_matches(replacement: str) -> None:
    renaming = Renaming(java_pattern("(a)"), replacement)
    assert renaming("b") is None
    with pytest.raises(ValueError, match=r"."):
        renaming("a")
