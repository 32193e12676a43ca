"""Regular expressions of subscriptions are RE2's."""

import pytest

from penstock.groups.consumer.regex import matching
from penstock.model.errors import ApiError, ErrorCode

NAMES = ("orders", "orders-eu", "old-orders", "payments", "__consumer_offsets")


@pytest.mark.parametrize(
    ("regex", "names"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("^orders$", {"orders"}),
        (".*orders", {"orders", "old-orders"}),
        ("orders|payments", {"orders", "payments"}),
        ("(?i)ORDERS", {"orders"}),
        (r"\w+", {"orders", "payments", "__consumer_offsets"}),
        (".*", set(NAMES)),
        ("", set()),
    ],
)
def test_the_whole_name_must_match(regex: str, names: set[str]) -> None:
    assert matching(regex, NAMES) == names


@pytest.mark.parametrize("regex", ["(", "[a", "a{2,1}", "*", r"(a)\1", "(?=a)", "(?P<n", "x{100000}"])
def test_what_is_no_expression_is_refused(regex: str) -> None:
    with pytest.raises(ApiError) as refusal:
        matching(regex, NAMES)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert regex in (refusal.value.detail or "")


def test_an_expression_made_to_run_forever_does_not() -> None:
    """With backtracking this would not end in our lifetime."""
    assert matching("(a*)*(a|aa)+(.*)*b", ["a" * 249]) == frozenset()
