"""Produce and Fetch, which have no message objects: which topics of a request are refused.

Decisions are remembered by the authorizer, so the usual answer costs two look-ups.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType
from penstock.wire.fetch import FetchRequest

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithAuthorizer, WithPartitions
    from penstock.broker.requests.call import Call

    class Needs(WithAuthorizer, WithPartitions, Protocol): ...


Key = str | bytes
"""A topic's name, or its id."""
TOPIC: Final = ResourceType.TOPIC
NONE: Final[frozenset[Key]] = frozenset()


def may_write_as(node: "Needs", call: "Call", transactional_id: str | None) -> bool:
    """As part of transactions of this id."""
    return transactional_id is not None and node.authorizer.allows(
        call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def may_not_write(node: "Needs", call: "Call", topics: Iterable[tuple[Key, object]]) -> Collection[Key]:
    return _refused(node, call, Operation.WRITE, {key for key, _ in topics})


def may_not_read(
    node: "Needs", call: "Call", request: FetchRequest, topics: Collection[Key]
) -> Collection[Key]:
    """A follower needs ClusterAction, everybody else Read on each topic."""
    if request.replica_id < 0:
        return _refused(node, call, Operation.READ, topics)
    if node.authorizer.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return NONE
    return topics


def _refused(node: "Needs", call: "Call", operation: Operation, topics: Iterable[Key]) -> Collection[Key]:
    allows = node.authorizer.allows
    refused: set[Key] = set()
    for key in topics:
        name: str
        if isinstance(key, bytes):
            held = node.partitions.topic(key)  # which will be served: the image may not have it yet
            if held is None:
                continue  # it is answered that there is none
            name = held.name
        else:
            name = key
        if not allows(call, operation, TOPIC, name):
            refused.add(key)
    return refused or NONE
