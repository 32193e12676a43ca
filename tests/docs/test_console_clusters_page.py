"""The page about a cluster's screens: its headings are screens, what it names in italics is what they say, its figures are
the code's."""

from __future__ import annotations

import re

from penstock.admin.moves.following import PARTITIONS_AT_ONCE
from penstock.client.errors import UserError
from penstock.console.clusters.lists import Wanted, topics
from penstock.console.clusters.statistics import KEPT_HASHES
from penstock.console.history.store import STEPS
from penstock.console.pages.group_reset import parse_values
from penstock.console.pages.screens import screens
from penstock.console.settings import HistorySettings
from penstock.console.words import words as words_of
from tests.docs.pages import HOW_TO
from tests.unit.console.clusters.making import topic

TEXT = (HOW_TO / "console-clusters.md").read_text()
FLAT = " ".join(TEXT.split())


def test_each_heading_is_a_screen() -> None:
    titles = {words_of("en")[each.title_key] for each in screens()}
    assert (
        set(re.findall(r"^## (.+)$", TEXT, re.MULTILINE))
        == {"Overview", "Topics", "Groups", "Cluster"} & titles
    )


def test_what_is_in_italics_is_what_the_screens_say() -> None:
    said = {each.lower() for each in words_of("en").values()}
    named = {each.lower() for each in re.findall(r"(?<!\*)\*([^*|]+)\*(?!\*)", FLAT)}
    assert named - said == set()
    assert len(named) > 20


def test_the_figures_are_those_of_the_code() -> None:
    assert f"{KEPT_HASHES:,}" in FLAT
    assert STEPS == ((3600, 60), (24 * 3600, 600))
    assert HistorySettings().keep_hours == 7 * 24
    assert PARTITIONS_AT_ONCE == 50


def test_the_search_and_the_lines_of_offsets_are_as_shown() -> None:
    found = topics(
        [topic("eu.orders-2"), topic("orders-us")], Wanted(search="orders eu"), may_see=lambda name: True
    )
    assert [row.name for row in found.rows] == ["eu.orders-2"]
    (block,) = re.findall(r"```\n(.*?)```", TEXT, re.DOTALL)
    try:
        values = parse_values(None, block)  # type: ignore[arg-type]  which is asked for words only when a line is wrong
    except (UserError, AttributeError) as error:
        raise AssertionError(block) from error
    assert sorted(str(one) for one in values) == ["orders-0", "orders-1"]
