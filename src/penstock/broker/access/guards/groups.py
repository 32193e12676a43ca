"""FindCoordinator, OffsetFetch, and the newer protocol of groups."""

from typing import TYPE_CHECKING, Any, Final

from penstock.broker.access.guards.forms import (
    REFUSALS,
    Asker,
    Passage,
    changed,
    merged,
    refusal_of,
    struct_of,
    take_out,
)
from penstock.broker.coordinators.host import context_of
from penstock.model.acl import NOT_ASKED, Operation, ResourceType
from penstock.model.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.broker.facets import WithAuthorizer
    from penstock.broker.requests.call import Call
    from penstock.coordination.form import RequestContext
    from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
    from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
    from penstock.wire.messages.offset_fetch import OffsetFetchRequest

GROUPS_FROM: Final = 8
"""Of OffsetFetch: several groups in one request."""
TOP_LEVEL_ERROR_FROM: Final = 2
MANY_FROM: Final = 4
"""Of FindCoordinator: several keys in one request."""
RESOURCES: Final = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
SHARE: Final = 2
NOBODY: Final = {"node_id": -1, "port": -1}
NO_OFFSET: Final = {"committed_offset": -1, "committed_leader_epoch": -1}


def find_coordinator(
    asker: Asker, request: "FindCoordinatorRequest", response: "type[Any]"
) -> Passage | None:
    """Describe on the group or transactional id. Coordinators of share groups are for brokers."""
    if request.key_type == SHARE:
        asker.need_in_cluster(Operation.CLUSTER_ACTION)
        return None
    resource_type = RESOURCES.get(request.key_type)
    if resource_type is None:
        return None  # invalid
    code = REFUSALS[resource_type]
    if asker.call.api_version >= MANY_FROM:
        kind = struct_of(response, "coordinators")

        def refuse(key: str) -> Any:
            if asker.may(Operation.DESCRIBE, resource_type, key):
                return None
            return refusal_of(kind, key, code, name="key", also=NOBODY)

        return take_out(request, "coordinator_keys", "coordinators", refuse)
    if asker.may(Operation.DESCRIBE, resource_type, request.key):
        return None

    def finish(answer: Any) -> None:
        answer.error_code, answer.error_message = int(code), None
        answer.node_id = answer.port = -1

    return Passage(None, finish)


def subscribes(asker: Asker, request: "ConsumerGroupHeartbeatRequest", response: "type[Any]") -> None:
    """Describe on each topic that a member subscribes to by name. What a regular expression matches is left out where the member
    may not see it (`groups/consumer/subscribe`)."""
    for name in dict.fromkeys(request.subscribed_topic_names or ()):
        asker.need(Operation.DESCRIBE, ResourceType.TOPIC, name)


def member_context(node: "WithAuthorizer", call: "Call") -> "RequestContext":
    """Of a request that may have a regular expression matched."""
    context = context_of(call)
    if not node.authorizer.is_on:
        return context

    def may_describe(name: str) -> bool:
        return node.authorizer.allows(call, Operation.DESCRIBE, ResourceType.TOPIC, name, tells=False)

    return context._replace(may_describe=may_describe)


def hide_members(asker: Asker, request: "ConsumerGroupDescribeRequest", response: "type[Any]") -> Passage:
    """A group with a member that has partitions of a topic which may not be described is refused."""

    def has_hidden(member: Any) -> bool:
        return any(
            not asker.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name)
            for assignment in (member.assignment, member.target_assignment)
            if assignment is not None
            for topic in assignment.topic_partitions
        )

    def finish(answer: Any) -> None:
        for group in answer.groups:
            if any(has_hidden(member) for member in group.members):
                group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                group.error_message = "The group has partitions of topics that the client may not describe."
                group.members = ()
                group.authorized_operations = NOT_ASKED

    return Passage(request, finish)


# --- OffsetFetch


def fetch_offsets(asker: Asker, request: "OffsetFetchRequest", response: "type[Any]") -> Passage | None:
    """Describe on the group, and on each topic. Of all topics, the others are left out."""
    if asker.call.api_version < GROUPS_FROM:
        return _of_one_group(asker, request, response)
    kind: Any = struct_of(response, "groups")
    refusals: list[Any] = []
    allowed: list[Any] = []
    finishes: list[Callable[[Any], None] | None] = []
    for group in request.groups:
        if not asker.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            refusals.append(kind(group_id=group.group_id, error_code=code))
            continue
        refusals.append(None)
        topics, finish = _topics(asker, group.topics, struct_of(kind, "topics"))
        allowed.append(changed(group, topics=topics))
        finishes.append(finish)

    def finish_all(answer: Any) -> None:
        for group, finish in zip(answer.groups, finishes, strict=False):
            if finish is not None and not group.error_code:
                finish(group)
        answer.groups = merged(answer.groups, refusals)

    return Passage(changed(request, groups=allowed) if allowed else None, finish_all)


def _of_one_group(asker: Asker, request: "OffsetFetchRequest", response: "type[Any]") -> Passage | None:
    kind = struct_of(response, "topics")
    if not asker.may(Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if asker.call.api_version >= TOP_LEVEL_ERROR_FROM:
            raise ApiError(code)
        refused = [refusal_of(kind, topic, code, also=NO_OFFSET) for topic in request.topics or ()]
        return Passage(None, lambda answer: setattr(answer, "topics", refused))
    topics, finish = _topics(asker, request.topics, kind)
    if finish is None:
        return None

    def unless_refused(answer: Any) -> None:
        if not answer.error_code:
            finish(answer)

    return Passage(changed(request, topics=topics), unless_refused)


def _topics(
    asker: Asker, topics: "Sequence[Any] | None", kind: "type[Any]"
) -> "tuple[Sequence[Any] | None, Callable[[Any], None] | None]":
    """Those that may be asked for, and what finishes the answer about them."""
    if topics is None:

        def leave_out(group: Any) -> None:
            group.topics = [
                topic for topic in group.topics if asker.may_topic(Operation.DESCRIBE, topic, tells=False)
            ]

        return None, leave_out
    refusals = [
        None
        if asker.may_topic(Operation.DESCRIBE, topic)
        else refusal_of(kind, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED, also=NO_OFFSET)
        for topic in topics
    ]
    if not any(refusals):
        return topics, None
    allowed = [topic for topic, refusal in zip(topics, refusals, strict=True) if refusal is None]
    return allowed, lambda group: setattr(group, "topics", merged(group.topics, refusals))
