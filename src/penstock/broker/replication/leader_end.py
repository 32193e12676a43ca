"""Asks a leader for its log end offset, when the follower's log is longer."""

from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.partitions.partition import Partition
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithPeers

    class Needs(WithBrokerId, WithPeers, Protocol): ...


LATEST: Final = -1


async def leader_end(node: "Needs", leader_id: int, partition: Partition, *, timeout_s: float) -> int:
    """ApiError when the leader refuses, PeerUnavailable when it does not answer."""
    wanted = ListOffsetsPartition(
        partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=LATEST
    )
    response = await node.peers.ask(
        leader_id,
        ListOffsetsRequest(
            replica_id=node.broker_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[wanted])]
        ),
        ListOffsetsResponse,
        version=await node.spoken.version(leader_id, ApiKey.LIST_OFFSETS),
        timeout_s=timeout_s,
    )
    result = response.topics[0].partitions[0]
    if result.error_code:
        raise ApiError(ErrorCode(result.error_code))
    return int(result.offset)
