"""Which replica a consumer should read from, as its leader sees it (KIP-392)."""

from typing import TYPE_CHECKING, Protocol

from penstock.replication.closest import LEADER, RACK_AWARE, closest_replica

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithConfig, WithImage
    from penstock.broker.partitions.partition import Partition

    class Needs(WithBrokerId, WithConfig, WithImage, Protocol): ...


def replica_for(node: "Needs", partition: "Partition", rack: str, fetch_offset: int) -> int:
    """Where a consumer in that rack should read; LEADER: here."""
    leadership = partition.leadership
    if leadership is None or node.config.get("replica.selector.class") != RACK_AWARE:
        return LEADER
    return closest_replica(
        rack,
        leader_id=node.broker_id,
        racks={broker.id: broker.rack for broker in node.image.brokers.values()},
        followers=[
            (id, follower.end_offset) for id, follower in leadership.followers.items() if id in leadership.isr
        ],
        fetch_offset=fetch_offset,
    )
