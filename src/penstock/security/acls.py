"""Who may do what: access rules (ACLs) decided as Kafka's StandardAuthorizer decides.

A rule stands on a pattern: one resource, all whose names begin with something, or all (`*`). Of the rules on all patterns that
match a resource, those count that name the principal (or everybody), its host (or all), and the operation (or ALL):

    one that denies wins, wherever it stands;
    else one that allows is enough. Read, Write, Delete and Alter allow Describe too, AlterConfigs allows DescribeConfigs.
         Nothing is implied for rules that deny;
    else the answer is no. Where no pattern with rules matches the resource at all, the default decides
         (`allow.everyone.if.no.acl.found`).

Super users are let through before any rule is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from penstock.model.acl import (
    ANY_NAME,
    ANY_PRINCIPAL,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)

IMPLIED_BY: Final[Mapping[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""A rule that allows one of these allows the operation."""


class Decision(NamedTuple):
    """`rule` on `pattern` decided. None: no rule did, but a super user's right, the default, or that nothing allows it."""

    is_allowed: bool
    pattern: Pattern | None = None
    rule: Rule | None = None
    is_super_user: bool = False
    has_rules: bool = True
    """Whether any pattern with rules matches the resource: if not, `allow.everyone.if.no.acl.found` decided."""


class AclRules:
    """The rules of a cluster, found by a resource's name without looking at all of them."""

    def __init__(self, *, super_users: Collection[str] = (), allow_if_no_acl_found: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.allow_if_no_acl_found = allow_if_no_acl_found
        self._literal: dict[tuple[ResourceType, str], tuple[Pattern, tuple[Rule, ...]]] = {}
        self._prefixed: dict[tuple[ResourceType, str], tuple[Pattern, tuple[Rule, ...]]] = {}
        # How long the prefixes are that there are, by type: a name is looked up once for each length.
        self._lengths: dict[ResourceType, dict[int, int]] = {}

    def set(self, pattern: Pattern, rules: Iterable[Rule]) -> None:
        """All rules of a pattern, in place of those it had."""
        given = tuple(rules)
        is_prefixed = pattern.pattern_type == PatternType.PREFIXED
        table = self._prefixed if is_prefixed else self._literal
        key = (pattern.resource_type, pattern.name)
        had = table.pop(key, None)
        if given:
            table[key] = (pattern, given)
        if is_prefixed and (had is None) == bool(given):
            lengths = self._lengths.setdefault(pattern.resource_type, {})
            length = len(pattern.name)
            lengths[length] = lengths.get(length, 0) + (1 if given else -1)
            if not lengths[length]:
                del lengths[length]

    def __iter__(self) -> Iterator[tuple[Pattern, tuple[Rule, ...]]]:
        yield from self._literal.values()
        yield from self._prefixed.values()

    def of_resource(
        self, resource_type: ResourceType, name: str
    ) -> Iterator[tuple[Pattern, tuple[Rule, ...]]]:
        """The patterns that match a resource, each with its rules."""
        literal = self._literal
        found = literal.get((resource_type, name))
        if found is not None:
            yield found
        if name != ANY_NAME:
            found = literal.get((resource_type, ANY_NAME))
            if found is not None:
                yield found
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                found = self._prefixed.get((resource_type, name[:length]))
                if found is not None:
                    yield found

    def decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        if principal in self.super_users:
            return Decision(True, is_super_user=True)
        host = _plain_host(host)
        allowing = _allowing(operation)
        denying = (operation, Operation.ALL)
        allowed: Decision | None = None
        has_rules = False
        for pattern, rules in self.of_resource(resource_type, name):
            has_rules = True
            for rule in rules:
                if rule.permission == Permission.DENY:
                    if rule.operation in denying and _is_about(rule, principal, host):
                        return Decision(False, pattern, rule)
                elif allowed is None and rule.operation in allowing and _is_about(rule, principal, host):
                    allowed = Decision(True, pattern, rule)
        if allowed is not None:
            return allowed
        return Decision(not has_rules and self.allow_if_no_acl_found, has_rules=has_rules)

    def decide_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether the principal may do this to some resource of the type, be there one of that name or not."""
        if principal in self.super_users:
            return True
        host = _plain_host(host)
        allowing = _allowing(operation)
        denying = (operation, Operation.ALL)
        denied: set[Pattern] = set()
        allowed: list[Pattern] = []
        for pattern, rules in self:
            if pattern.resource_type != resource_type:
                continue
            for rule in rules:
                if not _is_about(rule, principal, host):
                    continue
                if rule.permission == Permission.DENY and rule.operation in denying:
                    if pattern.name == ANY_NAME and pattern.pattern_type == PatternType.LITERAL:
                        return False  # of everything
                    denied.add(pattern)
                elif rule.permission == Permission.ALLOW and rule.operation in allowing:
                    allowed.append(pattern)
        if any(not _is_within(pattern, denied) for pattern in allowed):
            return True
        # A rule on everything, whomever it names, leaves nothing without a rule.
        return self.allow_if_no_acl_found and (resource_type, ANY_NAME) not in self._literal


def _is_about(rule: Rule, principal: str, host: str) -> bool:
    return rule.principal in (principal, ANY_PRINCIPAL) and (
        rule.host in (host, ANY_NAME) or (":" in rule.host and _plain_host(rule.host) == host)
    )


def _plain_host(host: str) -> str:
    """An IPv6 address can be written in many ways: Kafka's brokers know 0:0:0:0:0:0:0:1 where ours know ::1."""
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _allowing(operation: Operation) -> frozenset[Operation]:
    return IMPLIED_BY.get(operation, frozenset({operation})) | {Operation.ALL}


def _is_within(pattern: Pattern, denied: set[Pattern]) -> bool:
    """Whether everything that the pattern allows is denied: by the same pattern, or by a shorter prefix."""
    if pattern in denied:
        return True
    is_wildcard = pattern.name == ANY_NAME and pattern.pattern_type == PatternType.LITERAL
    return not is_wildcard and any(
        other.pattern_type == PatternType.PREFIXED and pattern.name.startswith(other.name) for other in denied
    )
