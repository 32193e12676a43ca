"""Who leads the partitions that a client wrongly asked us for, and how that broker is reached (KIP-951)."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.metadata.image import NO_LEADER
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Connection
from penstock.wire.leaders import CurrentLeader, NodeEndpoint
from penstock.wire.produce import ProduceResult

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithAddresses, WithBrokerId, WithImage, WithPartitions

    class Needs(WithAddresses, WithBrokerId, WithImage, WithPartitions, Protocol): ...


LED_ELSEWHERE: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""The refusals that say who leads."""


def current_leader(node: "Needs", topic_key: str | bytes, index: int) -> CurrentLeader | None:
    """As our own role says, or the image if that is newer; None where nobody leads."""
    topic = node.partitions.topic(topic_key)
    if topic is None:
        return None
    known: list[CurrentLeader] = []
    try:
        replica = topic.partition(index).replica
        leader_id = node.broker_id if replica.is_leader else replica.leader_id
        known.append(CurrentLeader(leader_id, replica.leader_epoch))
    except ApiError:
        pass  # it is not here
    placed = node.image.partition(topic.name, index)
    if placed is not None:
        known.append(CurrentLeader(placed.leader, placed.leader_epoch))
    newest = max(known, key=lambda leader: leader.leader_epoch, default=None)
    return None if newest is None or newest.leader_id == NO_LEADER else newest


def leaders_elsewhere(
    node: "Needs", topics: Sequence[tuple[str | bytes, Sequence[ProduceResult]]]
) -> dict[tuple[int, int], CurrentLeader]:
    """Of the partitions that were refused because another broker leads them, by their places in a Produce answer."""
    return {
        (number, place): leader
        for number, (key, results) in enumerate(topics)
        for place, (index, error, *_) in enumerate(results)
        if error in LED_ELSEWHERE and (leader := current_leader(node, key, index)) is not None
    }


def endpoints_of(
    node: "Needs", connection: Connection, leaders: Iterable[CurrentLeader]
) -> list[NodeEndpoint]:
    wanted = {leader.leader_id for leader in leaders}
    return [
        NodeEndpoint(*address)
        for address in node.addresses.for_clients(connection)
        if address.broker_id in wanted
    ]
