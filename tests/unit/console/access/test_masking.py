"""Masking: what a rule is about is shown to nobody but those whose role is exempt."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.console.access.masking import HIDDEN, BadPath, Mask, Masking, MaskingRule, parse_path
from penstock.console.access.roles import ADMIN, VIEWER

SECRET = "4929-1234-5678-9012"
LEAVES = st.none() | st.booleans() | st.integers() | st.text(alphabet="xyz", max_size=4)
NAMES = st.sampled_from(("a", "b", "secret", "card"))
VALUES = st.recursive(
    LEAVES | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)
PATHS = st.sampled_from(
    ("secret", "$.card.secret", "a[*].secret", "*.secret", "**.secret", "a[0]", "**.card.*")
)


def mask(**rule: Any) -> Mask:
    found = Masking([MaskingRule(topics=("orders*",), **rule)]).for_topic("orders", (VIEWER,))
    assert found is not None
    return found


def secrets_below(value: Any, name: str) -> list[Any]:
    """What stands under this name, at any depth."""
    if isinstance(value, dict):
        own = [value[name]] if name in value else []
        return own + [each for one in value.values() for each in secrets_below(one, name)]
    if isinstance(value, list):
        return [each for one in value for each in secrets_below(one, name)]
    return []


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("card.number", ("card", "number")),
        ("$.items[*].email", ("items", "*", "email")),
        ("items[0].email", ("items", 0, "email")),
        ("**.password", ("**", "password")),
        ("a-b.c d", ("a-b", "c d")),
    ],
)
def test_paths_are_read(path: str, parts: tuple[str | int, ...]) -> None:
    assert parse_path(path) == parts


@pytest.mark.parametrize("path", ["", "$", ".", "a..b", "a[", "a[x]", "**", "a.**", "a]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        parse_path(path)


@given(VALUES, st.lists(PATHS, min_size=1, max_size=3))
def test_the_value_itself_is_never_changed(value: Any, paths: list[str]) -> None:
    before = copy.deepcopy(value)
    mask(fields=tuple(paths)).value(value)
    assert value == before


@given(VALUES)
def test_a_field_at_any_depth_is_hidden_wherever_it_is(value: Any) -> None:
    shown = mask(fields=("**.secret",)).value(value)
    assert all(each in (HIDDEN, None) for each in secrets_below(shown, "secret"))


@given(VALUES)
def test_a_removed_field_is_nowhere(value: Any) -> None:
    shown = mask(fields=("**.secret",), how="remove").value(value)
    assert secrets_below(shown, "secret") == []


@given(VALUES)
def test_what_no_rule_is_about_stays_as_it_is(value: Any) -> None:
    if isinstance(value, dict | list) and "nowhere" not in json.dumps(value):
        assert mask(fields=("nowhere.at.all",)).value(value) == value


def test_a_path_through_lists_needs_no_brackets() -> None:
    shown = mask(fields=("items.email",)).value({"items": [{"email": "a@b.example", "n": 1}, {"n": 2}]})
    assert shown == {"items": [{"email": HIDDEN, "n": 1}, {"n": 2}]}


def test_the_end_of_a_number_may_be_shown_but_not_of_a_short_one() -> None:
    hidden = mask(fields=("card", "pin"), how="last-4").value({"card": SECRET, "pin": "1234"})
    assert hidden == {"card": f"{HIDDEN}9012", "pin": HIDDEN}


def test_equal_values_have_equal_hashes_that_differ_between_consoles() -> None:
    value = {"card": SECRET}
    one = mask(fields=("card",), how="hash", salt="a").value(value)["card"]
    assert one == mask(fields=("card",), how="hash", salt="a").value(value)["card"]
    assert one != mask(fields=("card",), how="hash", salt="b").value(value)["card"]
    assert SECRET not in one


def test_what_cannot_be_taken_apart_is_hidden_as_a_whole() -> None:
    rule = mask(fields=("card",))
    assert rule.value(SECRET) == HIDDEN
    assert rule.value(b"\xff") == HIDDEN
    assert rule.text("{broken json " + SECRET) == HIDDEN
    assert rule.value(None) is None, "a tombstone hides nothing"
    assert rule.key_text("key") == "key", "the rule is about values"


def test_a_rule_without_fields_hides_the_whole_value() -> None:
    rule = mask()
    assert rule.hides_value
    assert rule.value({"a": 1}) == HIDDEN
    assert rule.key("k") == "k"


def test_keys_and_headers_may_be_hidden() -> None:
    rule = mask(whole_key=True, headers=("x-*",))
    assert rule.key("k") == HIDDEN
    assert rule.key_text("k") == HIDDEN
    assert rule.header("x-token", b"t") == HIDDEN
    assert rule.header("trace", b"t") == b"t"
    assert rule.value({"a": 1}) == {"a": 1}
    assert mask(key_fields=("id",)).key({"id": 1, "n": 2}) == {"id": HIDDEN, "n": 2}


def test_a_value_deeper_than_anybody_looks_is_hidden_rather_than_missed() -> None:
    deep: Any = {"secret": SECRET}
    for _ in range(400):
        deep = {"a": deep}
    assert SECRET not in json.dumps(mask(fields=("**.secret",)).value(deep))


def test_an_exempt_role_sees_all_and_other_topics_are_seen_by_all() -> None:
    masking = Masking([MaskingRule(topics=("orders*",), except_roles=("admin",))])
    assert masking.for_topic("orders-eu", (VIEWER,)) is not None
    assert masking.for_topic("orders-eu", (VIEWER, ADMIN)) is None
    assert masking.for_topic("payments", (VIEWER,)) is None
