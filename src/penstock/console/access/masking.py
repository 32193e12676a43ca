"""Masking ◇: which parts of the records of a topic nobody sees but those whose role is exempt.

A rule has patterns of topics, paths of fields, and how a field is shown instead. A path goes through objects and lists:
`card.number`, `items[*].email`, `*.secret` (any field of that level), `**.password` (at any depth). `$.` in front is allowed.

    mask = Masking(rules).for_topic("orders", roles)     # None: all may be seen
    shown = mask.value(decoded)                          # of what JSON, Avro, … gave; never changed in place

What cannot be taken apart (text that is no object, bytes, a value that failed to be decoded) is hidden as a whole where a rule is
about the topic: `mask.text`. A search must look at what is shown, or it would tell what is hidden; what is masked for a visitor
may not be exported, copied or replayed by that visitor as bytes either: a mask that is not None says so.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.console.access.roles import Role, matches

HIDDEN: Final = "••••"
HOWS: Final = ("hide", "last-4", "hash", "remove")
MAX_DEPTH: Final = 60
_PART: Final = re.compile(r"([^.\[\]]+)|\[(\*|\d+)\]")
_ANY, _DEEP = "*", "**"
_GONE: Final = object()


class BadPath(ValueError):
    """A path that cannot be meant."""


@dataclass(frozen=True, kw_only=True)
class MaskingRule:
    topics: tuple[str, ...]
    fields: tuple[str, ...] = ()
    """Of values. Neither these, nor keys, nor headers: the whole value."""
    key_fields: tuple[str, ...] = ()
    whole_key: bool = False
    headers: tuple[str, ...] = ()
    """Patterns of names."""
    how: str = "hide"
    except_roles: tuple[str, ...] = ()
    salt: str = ""
    """Of `hash`: without one, values that are few could be guessed. The reader of the settings makes one where none is given."""

    @property
    def hides_whole_value(self) -> bool:
        return not (self.fields or self.key_fields or self.whole_key or self.headers)


def parse_path(text: str) -> tuple[str | int, ...]:
    """BadPath where it cannot be meant.

    >>> parse_path("$.items[*].email")
    ('items', '*', 'email')
    """
    body = text.strip()
    body = body[1:].removeprefix(".") if body.startswith("$") else body
    parts: list[str | int] = []
    at = 0
    while at < len(body):
        if parts and body[at] == ".":
            at += 1
        found = _PART.match(body, at)
        if found is None:
            raise BadPath(f"'{text}' is not a path such as card.number or items[*].email")
        name, index = found.groups()
        parts.append(name if name is not None else index if index == _ANY else int(index))
        at = found.end()
    if not parts or parts[-1] == _DEEP:
        raise BadPath(f"'{text}' is not a path such as card.number or items[*].email")
    return tuple(parts)


class Masking:
    """All rules of a console."""

    def __init__(self, rules: Sequence[MaskingRule]) -> None:
        self._rules = tuple(rules)

    def for_topic(self, topic: str, roles: Iterable[Role]) -> Mask | None:
        """None where all of it may be seen. One role that is exempt is enough."""
        names = {role.name for role in roles}
        found = [
            rule
            for rule in self._rules
            if names.isdisjoint(rule.except_roles) and any(matches(each, topic) for each in rule.topics)
        ]
        return Mask(found) if found else None


class Mask:
    """What of one topic is hidden from one visitor."""

    def __init__(self, rules: Sequence[MaskingRule]) -> None:
        self._rules = tuple(rules)
        self._of_values = tuple((parse_path(path), rule) for rule in rules for path in rule.fields)
        self._of_keys = tuple((parse_path(path), rule) for rule in rules for path in rule.key_fields)
        self.hides_value = any(rule.hides_whole_value for rule in rules)
        self.hides_key = any(rule.whole_key for rule in rules)

    def value(self, decoded: Any) -> Any:
        """Of a value that was decoded into objects and lists. Anything else is hidden where a rule is about values."""
        if self.hides_value:
            return None if decoded is None else HIDDEN
        return _masked(decoded, self._of_values)

    def key(self, decoded: Any) -> Any:
        if self.hides_key:
            return None if decoded is None else HIDDEN
        return _masked(decoded, self._of_keys)

    def header(self, name: str, value: Any) -> Any:
        for rule in self._rules:
            if any(matches(each, name) for each in rule.headers):
                return None if value is None else _shown(value, rule)
        return value

    def text(self, text: str) -> str:
        """Of a value that nothing could take apart: hidden where any rule is about values of the topic."""
        return HIDDEN if self.hides_value or self._of_values else text

    def key_text(self, text: str) -> str:
        return HIDDEN if self.hides_key or self._of_keys else text


_Paths = Sequence[tuple[tuple[str | int, ...], MaskingRule]]


def _masked(decoded: Any, paths: _Paths) -> Any:
    if not paths or decoded is None:
        return decoded
    if not isinstance(decoded, Mapping | list | tuple):
        return HIDDEN  # a field may be in there, and nothing tells where
    for path, rule in paths:
        decoded = _at(decoded, path, rule, MAX_DEPTH)
        if decoded is _GONE:
            return HIDDEN
    return decoded


def _at(node: Any, path: tuple[str | int, ...], rule: MaskingRule, depth: int) -> Any:
    """A copy of `node` with what is at `path` masked."""
    if depth == 0:
        return HIDDEN  # deeper than anybody looks: hidden rather than missed
    if not path:
        return _GONE if rule.how == "remove" else _shown(node, rule)
    step, rest = path[0], path[1:]
    if step == _DEEP:
        here = _at(node, rest, rule, depth - 1)
        return _each(here, lambda one: _at(one, path, rule, depth - 1), lambda name: True)
    if isinstance(node, Mapping):
        return _each(node, lambda one: _at(one, rest, rule, depth - 1), lambda name: step in (_ANY, name))
    if isinstance(node, list | tuple):
        if isinstance(step, int) or step == _ANY:
            return _each(node, lambda one: _at(one, rest, rule, depth - 1), lambda at: step in (_ANY, at))
        # `items.email` means the field of each: better hidden in too many places than in too few.
        return _each(node, lambda one: _at(one, path, rule, depth - 1), lambda at: True)
    return node


def _each(node: Any, change: Any, is_meant: Any) -> Any:
    if isinstance(node, Mapping):
        pairs = ((name, change(one) if is_meant(name) else one) for name, one in node.items())
        return {name: one for name, one in pairs if one is not _GONE}
    if isinstance(node, list | tuple):
        changed = (change(one) if is_meant(at) else one for at, one in enumerate(node))
        return [one for one in changed if one is not _GONE]
    return node


def _shown(value: Any, rule: MaskingRule) -> Any:
    if value is None:
        return None
    if rule.how == "last-4" and isinstance(value, str | int) and len(str(value)) > 8:
        return HIDDEN + str(value)[-4:]
    if rule.how == "hash":
        said = repr(value) if not isinstance(value, bytes | str) else value
        data = said if isinstance(said, bytes) else said.encode("utf-8", "surrogatepass")
        return "#" + hmac.new(rule.salt.encode(), data, hashlib.sha256).hexdigest()[:16]
    return HIDDEN
