"""Access rules (ACLs): who may do what to which resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from penstock.admin.configs import BROKER, describe_configs
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, UserError
from penstock.model.acl import (
    ALL_OPERATIONS,
    CLUSTER_NAME,
    OPERATIONS,
    TYPES,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
    shown,
)
from penstock.security.acl_filters import AclFilter
from penstock.security.acls import AclRules, Decision
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from penstock.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from penstock.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

Code = TypeVar("Code", bound=IntEnum)
SUPER_USERS = "super.users"
ALLOW_IF_NO_ACL = "allow.everyone.if.no.acl.found"


class Binding(NamedTuple):
    """A rule, and what it stands on."""

    pattern: Pattern
    rule: Rule


class Verdict(NamedTuple):
    decision: Decision
    knows_settings: bool
    """Whether the broker has told its super users, and what it does where there are no rules."""


def described(client: ClusterClient, wanted: AclFilter) -> list[Binding]:
    answer = client.ask(
        DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        ),
        DescribeAclsResponse,
    )
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    found = []
    for resource in answer.resources:
        pattern = _pattern(resource.resource_type, resource.resource_name, resource.pattern_type)
        found += [Binding(pattern, _rule(acl)) for acl in resource.acls]
    return found


def create(client: ClusterClient, bindings: Sequence[Binding]) -> None:
    """Those that are there already stay. `Refused` tells the first that is refused; the others are made."""
    creations = [
        AclCreation(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=rule.principal,
            host=rule.host,
            operation=rule.operation,
            permission_type=rule.permission,
        )
        for pattern, rule in bindings
    ]
    for result in client.ask(CreateAclsRequest(creations=creations), CreateAclsResponse).results:
        if result.error_code:
            raise refused(result.error_code, result.error_message)


def delete(client: ClusterClient, filters: Iterable[AclFilter]) -> list[Binding]:
    """What was removed, once each."""
    asked = [
        DeleteAclsFilter(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )
        for wanted in filters
    ]
    removed: dict[Binding, None] = {}
    for result in client.ask(DeleteAclsRequest(filters=asked), DeleteAclsResponse).filter_results:
        if result.error_code:
            raise refused(result.error_code, result.error_message)
        for acl in result.matching_acls:
            if acl.error_code:
                raise refused(acl.error_code, acl.error_message)
            pattern = _pattern(acl.resource_type, acl.resource_name, acl.pattern_type)
            removed[Binding(pattern, _rule(acl))] = None
    return list(removed)


def check(
    client: ClusterClient, principal: str, operation: Operation, resource: Pattern, *, host: str
) -> Verdict:
    """What the rules of the cluster say. Super users, and what holds where there is no rule, are settings of the brokers: they
    count where we may see them."""
    rules, knows_settings = _rules_for(client, resource)
    decision = rules.decide(principal, host, operation, resource.resource_type, resource.name)
    return Verdict(decision, knows_settings=knows_settings)


def check_all(
    client: ClusterClient, operation: Operation, resource: Pattern, *, host: str, also: Iterable[str] = ()
) -> dict[str, Verdict]:
    """The same for everybody whom a rule for the resource names, the super users, and `also`."""
    rules, knows_settings = _rules_for(client, resource)
    named = {rule.principal for _, on_pattern in rules for rule in on_pattern}
    return {
        principal: Verdict(
            rules.decide(principal, host, operation, resource.resource_type, resource.name),
            knows_settings=knows_settings,
        )
        for principal in sorted(named | rules.super_users | set(also))
    }


def _rules_for(client: ClusterClient, resource: Pattern) -> tuple[AclRules, bool]:
    """Those that match the resource, and whether the brokers have told their settings."""
    wanted = AclFilter(resource.resource_type, resource.name, PatternType.MATCH)
    by_pattern: dict[Pattern, list[Rule]] = {}
    for pattern, rule in described(client, wanted):
        by_pattern.setdefault(pattern, []).append(rule)
    settings = _settings(client)
    super_users = [one.strip() for one in (settings.get(SUPER_USERS) or "").split(";")]
    rules = AclRules(
        super_users=[one for one in super_users if one],
        allow_if_no_acl_found=(settings.get(ALLOW_IF_NO_ACL) or "").lower() == "true",
    )
    for pattern, on_pattern in by_pattern.items():
        rules.set(pattern, on_pattern)
    return rules, bool(settings)


def _settings(client: ClusterClient) -> dict[str, str | None]:
    try:
        node = next(iter(client.nodes()))
        entries = describe_configs(client, BROKER, str(node.node_id))
    except (Refused, UserError, StopIteration):
        return {}
    return {entry.name: entry.value for entry in entries if entry.name in (SUPER_USERS, ALLOW_IF_NO_ACL)}


# --- words


def operation_named(word: str) -> Operation:
    """`Read`, `READ`, `DescribeConfigs`, `DESCRIBE_CONFIGS`."""
    return _named(word, ALL_OPERATIONS, "operation")


def resource(kind: str, name: str, *, is_prefix: bool = False) -> Pattern:
    """UserError where there is no such kind. The cluster has one name only."""
    resource_type = _named(kind, TYPES, "resource type")
    if resource_type == ResourceType.CLUSTER:
        name = CLUSTER_NAME
    if not name:
        raise UserError(f"the name of a {shown(resource_type)} must not be empty")
    return Pattern(resource_type, name, PatternType.PREFIXED if is_prefix else PatternType.LITERAL)


def checked_principal(word: str) -> str:
    if ":" not in word:
        raise UserError(f"the principal '{word}' must be written as TYPE:NAME, such as User:{word or 'ana'}")
    return word


def check_supported(operation: Operation, resource_type: ResourceType) -> None:
    supported = OPERATIONS[resource_type]
    if operation not in (*supported, Operation.ALL):
        known = ", ".join(map(shown, (*supported, Operation.ALL)))
        raise UserError(
            f"{shown(operation)} cannot be done to a resource of type {shown(resource_type)}; use {known}"
        )


def _named(word: str, codes: Sequence[Code], what: str) -> Code:
    plain = word.replace("_", "").replace("-", "").lower()
    for code in codes:
        if shown(code).lower() == plain:
            return code
    raise UserError(f"there is no {what} '{word}'; use {', '.join(map(shown, codes))}")


def _pattern(resource_type: int, name: str, pattern_type: int) -> Pattern:
    return Pattern(_code(ResourceType, resource_type), name, _code(PatternType, pattern_type))


def _rule(acl: AclDescription | DeleteAclsMatchingAcl) -> Rule:
    return Rule(
        acl.principal, acl.host, _code(Operation, acl.operation), _code(Permission, acl.permission_type)
    )


def _code(codes: type[Code], code: int) -> Code:
    """Of a newer broker there may be some that we do not know."""
    try:
        return codes(code)
    except ValueError:
        return codes(0)
