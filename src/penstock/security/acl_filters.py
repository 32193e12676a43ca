"""Filters over access rules, as DescribeAcls and DeleteAcls have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from penstock.model.acl import (
    ANY_NAME,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)

Acls = Mapping[Pattern, tuple[Rule, ...]]


class AclFilter(NamedTuple):
    """None and ANY let everything through. With a name, the type of the pattern says how the name is meant:

    LITERAL, PREFIXED    the pattern of that type and exactly that name
    ANY                  patterns of either type and exactly that name
    MATCH                patterns that match the resource of that name: its own, `*`, and its prefixes
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def names_unknown_patterns(self) -> bool:
        return self.resource_type == ResourceType.UNKNOWN or self.pattern_type == PatternType.UNKNOWN

    @property
    def names_unknown_rules(self) -> bool:
        return self.operation == Operation.UNKNOWN or self.permission == Permission.UNKNOWN

    def matches_pattern(self, pattern: Pattern) -> bool:
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type == PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, ANY_NAME)

    def matches_rule(self, rule: Rule) -> bool:
        return (
            self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def candidates(self, acls: Acls) -> Iterable[tuple[Pattern, tuple[Rule, ...]]]:
        """The patterns that may match: one where the filter names it, else all."""
        is_one = self.resource_type > ResourceType.ANY and self.pattern_type > PatternType.MATCH
        if self.name is None or not is_one:
            return acls.items()
        only = Pattern(self.resource_type, self.name, self.pattern_type)
        return [(only, acls[only])] if only in acls else []

    def find(self, acls: Acls) -> Iterator[tuple[Pattern, tuple[Rule, ...]]]:
        """The patterns that match and have rules that match, with these."""
        for pattern, rules in self.candidates(acls):
            found = self.of(pattern, rules)
            if found:
                yield pattern, found

    def of(self, pattern: Pattern, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return tuple(filter(self.matches_rule, rules)) if self.matches_pattern(pattern) else ()
