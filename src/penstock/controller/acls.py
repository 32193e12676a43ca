"""Access rules are made and removed: CreateAcls, DeleteAcls.

All rules of a pattern are in one node, so many changes of one pattern are one write. Each write names the version of the node:
a Kafka broker of the same cluster may have changed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

from penstock.controller.decision import Decision
from penstock.metadata.acl_nodes import acl_path, change_prefix, encode_change, encode_rules
from penstock.metadata.image import NO_STATE, AclsChanged, ClusterImage
from penstock.metadata.tree import Create, Delete, Set
from penstock.model.acl import (
    CLUSTER_NAME,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.acl_filters import AclFilter
from penstock.wire.messages.create_acls import AclCreation, AclCreationResult
from penstock.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
)
from penstock.wire.messages.describe_acls import DescribeAclsRequest

MAX_NODE_BYTES: Final = 600_000
"""Of all rules of a pattern: ZooKeeper takes no node above a megabyte."""

Code = TypeVar("Code", bound=IntEnum)
Found = Sequence[tuple[Pattern, tuple[Rule, ...]]]


def create_acls(
    image: ClusterImage, creations: Sequence[AclCreation], *, notify: bool
) -> Decision[AclCreationResult]:
    """A rule that is there already is no error. `notify` leaves a node that says which pattern changed, for Kafka's brokers."""
    results: list[AclCreationResult] = []
    given: dict[Pattern, dict[Rule, None]] = {}
    sizes: dict[Pattern, int] = {}
    for creation in creations:
        try:
            pattern, rule = _checked(image, creation)
            rules = given.get(pattern)
            if rules is None:
                rules = given[pattern] = dict.fromkeys(image.acls.get(pattern, ()))
                sizes[pattern] = len(encode_rules(rules))
            if rule not in rules:
                size = sizes[pattern] + len(encode_rules((rule,)))
                if size > MAX_NODE_BYTES:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST,
                        f"too many rules on one resource: they may have {MAX_NODE_BYTES} bytes together",
                    )
                rules[rule] = None
                sizes[pattern] = size
        except ApiError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.detail))
        else:
            results.append(AclCreationResult())
    decision = Decision(results, [], [])
    for pattern, rules in given.items():
        _change(decision, image, pattern, tuple(rules), notify=notify)
    return decision


def delete_acls(
    image: ClusterImage,
    found: Sequence[Found | ApiError],
    *,
    notify: bool,
) -> Decision[DeleteAclsFilterResult]:
    """`found`: what each filter of the request matches, or why it is refused. What two filters match is told to both."""
    removed: dict[Pattern, set[Rule]] = {}
    results = []
    for each in found:
        if isinstance(each, ApiError):
            results.append(DeleteAclsFilterResult(error_code=each.code, error_message=each.detail))
            continue
        for pattern, rules in each:
            removed.setdefault(pattern, set()).update(rules)
        matching = [_matching(pattern, rule) for pattern, rules in each for rule in rules]
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=matching))
    decision = Decision(results, [], [])
    for pattern, gone in removed.items():
        kept = tuple(rule for rule in image.acls.get(pattern, ()) if rule not in gone)
        _change(decision, image, pattern, kept, notify=notify)
    return decision


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """What Kafka does not know matches nothing."""
    return AclFilter(
        _known(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        _known(PatternType, request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        _known(Operation, request.operation),
        _known(Permission, request.permission_type),
    )


def deletion_filter(request: DeleteAclsFilter) -> AclFilter:
    """ApiError where something in it is not known: it might mean more than it seems to."""
    found = filter_of(request)
    if found.names_unknown_patterns:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if found.names_unknown_rules:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return found


def _checked(image: ClusterImage, creation: AclCreation) -> tuple[Pattern, Rule]:
    """ApiError with Kafka's words."""
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    resource_type = _specific(ResourceType, creation.resource_type, "resourceType", ResourceType.ANY)
    pattern_type = _specific(PatternType, creation.resource_pattern_type, "patternType", PatternType.MATCH)
    operation = _specific(Operation, creation.operation, "operation", Operation.ANY)
    permission = _specific(Permission, creation.permission_type, "permissionType", Permission.ANY)
    if ":" not in creation.principal:
        raise _invalid(
            f"Could not parse principal from `{creation.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    pattern = Pattern(resource_type, creation.resource_name, pattern_type)
    if pattern in image.acl_faults:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, image.acl_faults[pattern])
    return pattern, Rule(creation.principal, creation.host, operation, permission)


def _known(codes: type[Code], code: int) -> Code:
    try:
        return codes(code)
    except ValueError:
        return codes(0)


def _specific(codes: type[Code], code: int, what: str, last_of_filters: Code) -> Code:
    found = _known(codes, code)
    if found <= last_of_filters:
        raise _invalid(f"Invalid {what} {found.name}")
    return found


def _invalid(detail: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, detail)


def _change(
    decision: Decision[Any], image: ClusterImage, pattern: Pattern, rules: Iterable[Rule], *, notify: bool
) -> None:
    """A pattern's rules from now on. Without rules there is no node."""
    now = tuple(rules)
    version = image.acl_versions.get(pattern, NO_STATE)
    if now == image.acls.get(pattern, ()):
        return
    path = acl_path(pattern)
    if not now:
        decision.ops.append(Delete(path, version))
    elif version == NO_STATE:
        decision.ops.append(Create(path, encode_rules(now)))
    else:
        decision.ops.append(Set(path, encode_rules(now), version))
    if notify:
        decision.ops.append(Create(change_prefix(pattern), encode_change(pattern), sequence=True))
    decision.changes.append(AclsChanged(pattern, now, version + 1 if now else NO_STATE))


def _matching(pattern: Pattern, rule: Rule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )
