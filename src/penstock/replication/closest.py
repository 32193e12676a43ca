"""From which replica a consumer should read, when it says in which rack it is."""

from collections.abc import Iterable, Mapping
from typing import Final

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER: Final = -1


def closest_replica(
    rack: str,
    *,
    leader_id: int,
    racks: Mapping[int, str | None],
    followers: Iterable[tuple[int, int]],
    fetch_offset: int,
) -> int:
    """LEADER when the leader is in the rack, or nobody there has the offset. `followers` are (id, end offset) of those in
    sync; of several the one that has most.
    """
    if racks.get(leader_id) == rack:
        return LEADER
    best, most = LEADER, -1
    for replica_id, end_offset in followers:
        if racks.get(replica_id) == rack and end_offset >= fetch_offset and end_offset > most:
            best, most = replica_id, end_offset
    return best
