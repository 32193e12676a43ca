"""Where the replicas of new partitions go.

Brokers stand in a ring in which racks alternate: with A = 1, 2 and B = 3, 4 it is 1 3 2 4. Partition n is led
by the n-th broker of the ring after the start, so leaders are spread evenly. Its followers are the next in
the ring; each time the leaders have gone round, the followers move one place further, so that a broker's load
is taken over by all others when it fails, not always by its neighbour:

    ring 1 2 3, two replicas:   [1,2] [2,3] [3,1] | [1,3] [2,1] [3,2] | [1,2] …

A rack gets a second replica only when every rack has one. The start is an argument: who wants chance brings
it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from penstock.metadata.image import BrokerRegistration
from penstock.model.errors import ApiError, ErrorCode


def place_replicas(
    brokers: Mapping[int, BrokerRegistration],
    *,
    num_partitions: int,
    replication_factor: int,
    start_index: int = 0,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of `num_partitions` partitions, the leader first; ApiError when the brokers are too
    few."""
    _check_replication_factor(replication_factor, len(brokers))
    ring = broker_ring(brokers.values())
    racks = {id: broker.rack for id, broker in brokers.items()}
    num_racks = len(set(racks.values()))
    placed = []
    for partition in range(first_partition, first_partition + num_partitions):
        leader_at = (start_index + partition) % len(ring)
        shift = partition // len(ring)
        placed.append(_replicas(ring, racks, num_racks, leader_at, shift, replication_factor))
    return placed


def broker_ring(brokers: Iterable[BrokerRegistration]) -> list[int]:
    """Broker ids, racks alternating; in order of id when there are no racks."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(broker.rack or "", []).append(broker.id)
    racks = [by_rack[rack] for rack in sorted(by_rack)]
    ring: list[int] = []
    for position in range(max(map(len, racks), default=0)):
        ring.extend(rack[position] for rack in racks if position < len(rack))
    return ring


def start_index_of(brokers: Mapping[int, BrokerRegistration], broker_id: int) -> int:
    """Where the broker stands in the ring, so that a growing topic continues where it began; 0 when it is
    gone."""
    ring = broker_ring(brokers.values())
    return ring.index(broker_id) if broker_id in ring else 0


def check_manual_assignment(
    brokers: Container[int], replicas: Sequence[int], *, replication_factor: int | None
) -> None:
    """`replication_factor` is that of the partitions before, None for the first."""
    if not replicas:
        raise _bad_assignment("includes an empty replica list.")
    previous = None
    for id in sorted(replicas):
        if id not in brokers:
            raise _bad_assignment(f"includes broker {id}, but no such broker is registered.")
        if id == previous:
            raise _bad_assignment(f"includes the broker {id} more than once.")
        previous = id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _bad_assignment(
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent with previous"
            f" partitions, which have {replication_factor} replica(s)."
        )


def _replicas(
    ring: list[int],
    racks: Mapping[int, str | None],
    num_racks: int,
    leader_at: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    leader = ring[leader_at]
    others = len(ring) - 1
    # Where racks alternate, a step of one would only swap racks: move by a whole round of them instead.
    step = shift * num_racks if num_racks > 1 else shift
    candidates = [ring[(leader_at + 1 + (step + place) % others) % len(ring)] for place in range(others)]
    chosen = [leader]
    used_racks = {racks[leader]}
    while len(chosen) < replication_factor:
        if len(used_racks) == num_racks:
            used_racks = set()
        for id in candidates:
            if racks[id] not in used_racks:
                break
        else:
            # The racks that are left have no broker left: take any.
            used_racks = set()
            id = candidates[0]
        candidates.remove(id)
        chosen.append(id)
        used_racks.add(racks[id])
    return tuple(chosen)


def _check_replication_factor(replication_factor: int, num_brokers: int) -> None:
    reason = None
    if replication_factor <= 0:
        reason = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif num_brokers == 0:
        reason = "All brokers are currently fenced or in controlled shutdown."
    elif replication_factor > num_brokers:
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only"
            f" {num_brokers} broker(s) are registered."
        )
    if reason is not None:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): {reason}",
        )


def _bad_assignment(rest: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {rest}")
