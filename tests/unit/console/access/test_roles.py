"""Roles: what is not allowed by a grant is refused."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.access.actions import Action
from penstock.console.access.roles import (
    ADMIN,
    OPERATOR,
    VIEWER,
    Grant,
    Role,
    is_allowed,
    is_allowed_somewhere,
    matches,
)

NAMES = st.text(alphabet="ab.-*", max_size=8)
PATTERNS = st.text(alphabet="ab.-*", min_size=1, max_size=8)
GRANTS = st.builds(
    Grant,
    actions=st.frozensets(st.sampled_from(Action), max_size=4),
    names=st.lists(PATTERNS, max_size=3).map(tuple),
    clusters=st.lists(PATTERNS, max_size=2).map(tuple),
)
ROLES = st.lists(st.builds(Role, st.just("r"), st.lists(GRANTS, max_size=3).map(tuple)), max_size=3)


@given(PATTERNS, NAMES)
def test_a_star_stands_for_any_characters_and_nothing_else_is_special(pattern: str, name: str) -> None:
    meant = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(pattern, name) == (re.fullmatch(meant, name, re.DOTALL) is not None)


def test_a_pattern_of_many_stars_is_looked_at_in_time() -> None:
    began_s = time.process_time()
    assert not matches("a*" * 5000 + "b", "a" * 20_000)
    assert time.process_time() - began_s < 5  # a naive search would not end in this century


def test_a_viewer_changes_nothing() -> None:
    for action in Action:
        is_read = action in (Action.VIEW, Action.READ_MESSAGES)
        assert is_allowed((VIEWER,), action, "orders", "local") == is_read
        assert is_allowed_somewhere((VIEWER,), action) == is_read


def test_an_operator_neither_deletes_topics_nor_gives_rights_nor_changes_the_cluster() -> None:
    refused = {action for action in Action if not is_allowed((OPERATOR,), action, "orders", "local")}
    assert refused == {Action.DELETE_TOPICS, Action.EDIT_SECURITY, Action.EDIT_CLUSTER}


def test_an_admin_may_do_all() -> None:
    assert all(is_allowed((ADMIN,), action) for action in Action)


def test_patterns_of_names_bound_a_role() -> None:
    team = Role(
        "team", (Grant(actions=frozenset({Action.EDIT_TOPICS}), names=("orders-*",), clusters=("prod",)),)
    )
    assert is_allowed((team,), Action.EDIT_TOPICS, "orders-eu", "prod")
    assert not is_allowed((team,), Action.EDIT_TOPICS, "payments", "prod")
    assert not is_allowed((team,), Action.EDIT_TOPICS, "orders-eu", "test")
    assert not is_allowed((team,), Action.EDIT_TOPICS, "*", "prod"), "all of them are more than those"
    assert is_allowed_somewhere((team,), Action.EDIT_TOPICS, "prod")
    assert not is_allowed_somewhere((team,), Action.EDIT_TOPICS, "test")


@given(ROLES, st.sampled_from(Action), NAMES, NAMES)
def test_what_is_allowed_is_allowed_somewhere(
    roles: list[Role], action: Action, name: str, cluster: str
) -> None:
    if is_allowed(roles, action, name, cluster):
        assert is_allowed_somewhere(roles, action, cluster)


@given(ROLES, GRANTS, st.sampled_from(Action), NAMES, NAMES)
def test_another_grant_never_takes_anything_away(
    roles: list[Role], grant: Grant, action: Action, name: str, cluster: str
) -> None:
    if is_allowed(roles, action, name, cluster):
        assert is_allowed([*roles, Role("more", (grant,))], action, name, cluster)


@given(ROLES, st.sampled_from(Action), NAMES, NAMES)
def test_without_a_grant_of_the_action_nothing_is_allowed(
    roles: list[Role], action: Action, name: str, cluster: str
) -> None:
    if not any(action in grant.actions for role in roles for grant in role.grants):
        assert not is_allowed(roles, action, name, cluster)
        assert not is_allowed_somewhere(roles, action, cluster)
