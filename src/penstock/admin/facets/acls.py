"""`cluster.acls`."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import NamedTuple

from penstock.admin import acls
from penstock.admin.clients import ClusterClients
from penstock.client.cluster_client import ClusterClient
from penstock.model.acl import ANY_NAME, Pattern, PatternType, Permission, ResourceType, Rule, shown
from penstock.security.acl_filters import AclFilter


class Acl(NamedTuple):
    """A rule: who may (`Allow`) or may not (`Deny`) do what, from where (`*`: anywhere), to what."""

    principal: str
    permission: str
    operation: str
    resource_type: str
    resource_name: str
    pattern: str
    """`Literal`: the resource of that name, or all where it is `*`. `Prefixed`: all whose names begin so."""
    host: str


class Answer(NamedTuple):
    is_allowed: bool
    reason: str
    acl: Acl | None
    """The rule that decided. None: no rule did, the reason says what."""


class Acls:
    """The access rules of a cluster."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def list(
        self, *, principal: str | None = None, resource_type: str | None = None, name: str | None = None
    ) -> builtins.list[Acl]:
        """All rules, or those for a principal, or those that count for the resource of a type and a name.

        >>> cluster.acls.list(resource_type="topic", name="orders")
        [Acl('User:ana', 'Allow', 'Read', 'Topic', 'orders', 'Literal', '*')]
        """
        wanted = _filter(resource_type, name)._replace(principal=principal)
        found = self._clients.call(lambda client: acls.described(client, wanted))
        return sorted(map(_shown, found), key=lambda one: (one.resource_type, one.resource_name, one))

    def add(
        self,
        principal: str,
        operations: Iterable[str],
        *,
        resource_type: str = "topic",
        name: str = "",
        is_prefix: bool = False,
        host: str = ANY_NAME,
        deny: bool = False,
    ) -> builtins.list[Acl]:
        """Lets a principal do something, or with `deny` forbids it. What is there already stays. The rules.

        >>> cluster.acls.add("User:ana", ["Read"], name="orders")
        [Acl('User:ana', 'Allow', 'Read', 'Topic', 'orders', 'Literal', '*')]
        """
        pattern = acls.resource(resource_type, name, is_prefix=is_prefix)
        wanted = [
            acls.Binding(pattern, rule)
            for rule in _rules(principal, operations, pattern, host=host, deny=deny)
        ]
        self._clients.change(lambda client: acls.create(client, wanted))
        return [_shown(each) for each in wanted]

    def remove(
        self,
        *,
        principal: str | None = None,
        operation: str | None = None,
        resource_type: str | None = None,
        name: str | None = None,
        is_prefix: bool = False,
        host: str | None = None,
        deny: bool | None = None,
    ) -> builtins.list[Acl]:
        """Removes the rules that are as described, on exactly that name. What is not said may be anything. Returns what is gone.

        >>> cluster.acls.remove(principal="User:ana", name="orders", resource_type="topic")
        [Acl('User:ana', 'Allow', 'Read', 'Topic', 'orders', 'Literal', '*')]
        """
        wanted = _filter(resource_type, name)._replace(principal=principal, host=host)
        if name is not None:
            wanted = wanted._replace(pattern_type=PatternType.PREFIXED if is_prefix else PatternType.LITERAL)
        if operation is not None:
            wanted = wanted._replace(operation=acls.operation_named(operation))
        if deny is not None:
            wanted = wanted._replace(permission=Permission.DENY if deny else Permission.ALLOW)

        def ask(client: ClusterClient) -> builtins.list[Acl]:
            return [_shown(each) for each in acls.delete(client, [wanted])]

        return self._clients.change(ask)

    def check(
        self,
        principal: str,
        operation: str,
        *,
        resource_type: str = "topic",
        name: str = "",
        host: str = ANY_NAME,
    ) -> Answer:
        """Whether the principal may do this to a resource, and which rule decides.

        Without `host` only rules for all hosts count.

        >>> cluster.acls.check("User:ana", "Write", name="orders")
        Answer(is_allowed=False, reason='no rule allows it', acl=None)
        """
        pattern = acls.resource(resource_type, name)
        wanted = acls.operation_named(operation)
        acls.check_supported(wanted, pattern.resource_type)
        who = acls.checked_principal(principal)
        return _answer(self._clients.call(lambda client: acls.check(client, who, wanted, pattern, host=host)))

    def who(
        self,
        operation: str,
        *,
        resource_type: str = "topic",
        name: str = "",
        host: str = ANY_NAME,
        also: Iterable[str] = (),
    ) -> dict[str, Answer]:
        """The same for everybody whom a rule for the resource names, for the brokers' super users, and for the principals `also`.

        >>> cluster.acls.who("Read", name="orders")["User:ana"].is_allowed
        True
        """
        pattern = acls.resource(resource_type, name)
        wanted = acls.operation_named(operation)
        acls.check_supported(wanted, pattern.resource_type)
        others = [acls.checked_principal(each) for each in also]
        found = self._clients.call(
            lambda client: acls.check_all(client, wanted, pattern, host=host, also=others)
        )
        return {principal: _answer(verdict) for principal, verdict in found.items()}


def _answer(verdict: acls.Verdict) -> Answer:
    decision = verdict.decision
    if decision.rule is not None and decision.pattern is not None:
        acl = _shown(acls.Binding(decision.pattern, decision.rule))
        verb = "allows" if decision.is_allowed else "forbids"
        return Answer(decision.is_allowed, f"a rule {verb} it", acl)
    return Answer(decision.is_allowed, _reason(verdict), None)


def _reason(verdict: acls.Verdict) -> str:
    decision = verdict.decision
    if decision.is_super_user:
        return f"it is one of the brokers' {acls.SUPER_USERS}"
    if decision.is_allowed:
        return f"there is no rule for this resource, and {acls.ALLOW_IF_NO_ACL} is true"
    reason = "no rule allows it" if decision.has_rules else "there is no rule for this resource"
    if not verdict.knows_settings:
        reason += f"; the brokers do not tell us their {acls.SUPER_USERS} and {acls.ALLOW_IF_NO_ACL}"
    return reason


def _rules(
    principal: str, operations: Iterable[str], pattern: Pattern, *, host: str, deny: bool
) -> list[Rule]:
    who = acls.checked_principal(principal)
    permission = Permission.DENY if deny else Permission.ALLOW
    wanted = [acls.operation_named(one) for one in operations]
    for operation in wanted:
        acls.check_supported(operation, pattern.resource_type)
    return [Rule(who, host, operation, permission) for operation in wanted]


def _filter(resource_type: str | None, name: str | None) -> AclFilter:
    if resource_type is None:
        return AclFilter(name=name, pattern_type=PatternType.ANY if name is None else PatternType.MATCH)
    one = acls.resource(resource_type, ANY_NAME if name is None else name)
    if name is None and one.resource_type != ResourceType.CLUSTER:
        return AclFilter(one.resource_type)
    return AclFilter(one.resource_type, one.name, PatternType.MATCH)


def _shown(binding: acls.Binding) -> Acl:
    pattern, rule = binding
    return Acl(
        rule.principal,
        shown(rule.permission),
        shown(rule.operation),
        shown(pattern.resource_type),
        pattern.name,
        shown(pattern.pattern_type),
        rule.host,
    )
