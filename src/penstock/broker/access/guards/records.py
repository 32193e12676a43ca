"""Produce and Fetch, which have no message objects: which topics of a request are refused.

Decisions are remembered by the authorizer, so the usual answer costs two look-ups.

Between the check and the append, or the second look of a fetch that waits, a topic may come. An id that nobody could
check, since its topic was not there, is therefore refused as unknown for the whole request.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType
from penstock.model.errors import ErrorCode
from penstock.wire.fetch import FetchRequest

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithAuthorizer, WithPartitions
    from penstock.broker.requests.call import Call

    class Needs(WithAuthorizer, WithPartitions, Protocol): ...


Key = str | bytes
"""A topic's name, or its id."""
TOPIC: Final = ResourceType.TOPIC
Refusals = Mapping[Key, ErrorCode]
NONE: Final[Refusals] = MappingProxyType({})


def may_write_as(node: "Needs", call: "Call", transactional_id: str | None) -> bool:
    """As part of transactions of this id."""
    return transactional_id is not None and node.authorizer.allows(
        call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def may_not_write(node: "Needs", call: "Call", topics: Iterable[tuple[Key, object]]) -> Refusals:
    return _refused(node, call, Operation.WRITE, {key for key, _ in topics})


def may_not_read(node: "Needs", call: "Call", request: FetchRequest, topics: Iterable[Key]) -> Refusals:
    """A follower needs ClusterAction, everybody else Read on each topic."""
    if request.replica_id < 0:
        return _refused(node, call, Operation.READ, topics)
    if node.authorizer.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return NONE
    return dict.fromkeys(topics, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _refused(node: "Needs", call: "Call", operation: Operation, topics: Iterable[Key]) -> Refusals:
    allows = node.authorizer.allows
    refused: dict[Key, ErrorCode] = {}
    for key in topics:
        name: str
        if isinstance(key, bytes):
            held = node.partitions.topic(key)  # which will be served: the image may not have it yet
            if held is None:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            name = held.name
        else:
            name = key
        if not allows(call, operation, TOPIC, name):
            refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return refused or NONE
