"""What the fields of the page mean, and how they stand in an address."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import UserError
from penstock.console.messages.asked import Asked, parse_partitions, parse_time
from penstock.console.messages.wanted import Part

NOW_S = 1_800_000_000.0


@given(
    st.builds(
        Asked,
        mode=st.sampled_from(["newest", "oldest", "offset", "time", "live"]),
        start=st.text(max_size=20),
        limit=st.integers(1, 5000),
        text=st.text(max_size=50),
        kind=st.sampled_from(["text", "pattern", "json"]),
        ignores_case=st.booleans(),
        control=st.booleans(),
    )
)
def test_an_address_says_all_that_was_asked(asked: Asked) -> None:
    assert Asked.of_query(asked.query()) == asked


def test_an_address_that_nobody_made_is_as_usual() -> None:
    assert Asked.of_query({"mode": "sideways", "kind": "x", "limit": "many", "nulls": "yes"}) == Asked()
    assert Asked.of_query({"text": "x" * 100_000}).text == "x" * 4000


@pytest.mark.parametrize(
    ("text", "found"),
    [("", None), (" ", None), ("3", (3,)), ("0, 2-4,2", (0, 2, 3, 4)), ("7-7", (7,))],
)
def test_partitions_are_numbers_and_ranges(text: str, found: tuple[int, ...] | None) -> None:
    assert parse_partitions(text) == found


@pytest.mark.parametrize("text", ["x", "1-", "-1", "1,,2", "5-3", "0-9999999", "100000"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="partitions are numbers"):
        parse_partitions(text)


def test_times_are_ago_dates_or_milliseconds() -> None:
    assert parse_time("10m", now_s=NOW_S) == datetime.fromtimestamp(NOW_S - 600, UTC)
    assert parse_time("1.5 h ago", now_s=NOW_S) == datetime.fromtimestamp(NOW_S - 5400, UTC)
    assert parse_time("2026-11-16 08:00+01:00") == datetime(2026, 11, 16, 7, tzinfo=UTC)
    assert parse_time("1700000000000") == datetime.fromtimestamp(1_700_000_000, UTC)
    assert parse_time("2026-11-16") == datetime(2026, 11, 16).astimezone(UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "99999999999999999999", "m", "10 weeks"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a time: write 10m"):
        parse_time(text)


def test_fields_become_a_search() -> None:
    search = Asked(
        mode="offset",
        start="1,000",
        partitions="1",
        limit=50,
        kind="json",
        text=" $.a > 1 ",
        uncommitted=True,
        key="k",
    ).search("orders")
    assert (search.start, search.partitions, search.newest_first, search.committed) == (
        1000,
        (1,),
        False,
        False,
    )
    assert (search.wanted.path, search.wanted.text, search.wanted.key) == ("$.a > 1", "", "k")
    search = Asked(kind="pattern", text="^a", part="key", ignores_case=True).search("orders")
    assert (search.newest_first, search.wanted.is_pattern, search.wanted.part) == (True, True, Part.KEY)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(mode="offset", start="first"), "an offset is a number"),
        (Asked(limit=0), "between 1 and 5,000"),
        (Asked(limit=6000), "between 1 and 5,000"),
        (Asked(kind="json", text="$.a >"), "cannot be read"),
    ],
)
def test_a_field_that_means_nothing_is_refused(asked: Asked, said: str) -> None:
    with pytest.raises(UserError, match=said):
        asked.search("orders")
