"""The three guarantees, and what can be asked of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

AT_LEAST_ONCE: Literal["at-least-once"] = "at-least-once"
AT_MOST_ONCE: Literal["at-most-once"] = "at-most-once"
EXACTLY_ONCE: Literal["exactly-once"] = "exactly-once"
Guarantee = Literal["at-least-once", "at-most-once", "exactly-once"]

DEFAULT_RETRIES = 3
READ_COMMITTED = "read_committed"


def checked_retries(retries: int | None, guarantee: Guarantee) -> int:
    """The number of retries, `None` being the guarantee's own; ValueError for one that contradicts it."""
    if retries is None:
        return 0 if guarantee == AT_MOST_ONCE else DEFAULT_RETRIES
    if retries < 0:
        raise ValueError("retries must not be negative")
    if retries and guarantee == AT_MOST_ONCE:
        raise ValueError("at-most-once means that a handler is not called again: retries must be 0")
    return retries


def check_names(topics: Sequence[str], *, group: str, guarantee: str) -> None:
    if not topics or not all(topics):
        raise ValueError("name at least one topic")
    if not group:
        raise ValueError("name the group")
    if guarantee not in (AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE):
        known = f"'{AT_LEAST_ONCE}', '{AT_MOST_ONCE}' or '{EXACTLY_ONCE}'"
        raise ValueError(f"the guarantee is {known}, not '{guarantee}'")


def check_isolation(settings: Mapping[str, Any], guarantee: Guarantee) -> None:
    """A member that does not wait for offsets in a transaction begins before them, and the transaction may still be committed."""
    level = settings.get("isolation.level", READ_COMMITTED)
    if guarantee == EXACTLY_ONCE and level != READ_COMMITTED:
        raise ValueError(f"exactly-once needs isolation.level={READ_COMMITTED}, not '{level}'")
