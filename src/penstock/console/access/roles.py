"""Roles ◇: which actions, on the resources with which names, of which clusters.

A pattern is a name in which `*` stands for any characters; nothing else in it is special. What no grant allows is refused: there
are no rules that take away. Asking about the resource `*` asks about all of them, so `orders-*` does not answer it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from penstock.console.access.actions import Action

EVERYTHING: Final = ("*",)


def matches(pattern: str, name: str) -> bool:
    """In time proportional to both, whatever the pattern.

    >>> matches("orders-*", "orders-eu"), matches("orders-*", "*")
    (True, False)
    """
    if pattern == "*":
        return True
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - len(last) >= at and name.endswith(last)


@dataclass(frozen=True, kw_only=True)
class Grant:
    actions: frozenset[Action]
    names: tuple[str, ...] = EVERYTHING
    """Patterns of topics, groups, subjects, connectors: whatever the action is about."""
    clusters: tuple[str, ...] = EVERYTHING

    def covers(self, action: Action, resource: str, cluster: str) -> bool:
        return (
            action in self.actions
            and any(matches(pattern, cluster) for pattern in self.clusters)
            and any(matches(pattern, resource) for pattern in self.names)
        )


@dataclass(frozen=True)
class Role:
    name: str
    grants: tuple[Grant, ...]


VIEWER: Final = Role("viewer", (Grant(actions=frozenset({Action.VIEW, Action.READ_MESSAGES})),))
OPERATOR: Final = Role(
    "operator",
    (
        Grant(
            actions=frozenset(
                {
                    Action.VIEW, Action.READ_MESSAGES, Action.PRODUCE, Action.EDIT_TOPICS, Action.EDIT_GROUPS,
                    Action.EDIT_SCHEMAS, Action.EDIT_CONNECTORS, Action.RUN_SQL,
                }
            )
        ),
    ),
)  # fmt: skip
ADMIN: Final = Role("admin", (Grant(actions=frozenset(Action)),))
BUILT_IN: Final = {role.name: role for role in (VIEWER, OPERATOR, ADMIN)}


def is_allowed(roles: Iterable[Role], action: Action, resource: str = "*", cluster: str = "*") -> bool:
    return any(grant.covers(action, resource, cluster) for role in roles for grant in role.grants)


def is_allowed_somewhere(roles: Iterable[Role], action: Action, cluster: str = "*") -> bool:
    """For at least one name that may exist: what a menu asks before it shows a button."""
    return any(
        action in grant.actions
        and grant.names
        and any(matches(pattern, cluster) for pattern in grant.clusters)
        for role in roles
        for grant in role.grants
    )
