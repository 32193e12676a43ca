"""Subscriptions by regular expression: a topic is subscribed to when the whole of its name matches."""

from collections.abc import Iterable

from penstock.model.errors import ApiError
from penstock.model.patterns import full_match


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """ApiError if the expression is none."""
    try:
        matches = full_match(regex)
    except ApiError as refusal:
        raise ApiError(
            refusal.code,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {refusal.detail}.",
        ) from None
    return frozenset(filter(matches, names))
