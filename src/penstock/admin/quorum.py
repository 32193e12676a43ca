"""The quorum of controllers that keeps the metadata of a cluster in KRaft mode. Clusters of Penstock have none."""

from __future__ import annotations

from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID, id_text
from penstock.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from penstock.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from penstock.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

METADATA_TOPIC = "__cluster_metadata"
BROKERS, CONTROLLERS = 1, 2
UNKNOWN_TIME_MS = -1


class NoQuorum(Refused):
    """The cluster does not keep its metadata in a quorum of its own."""

    def __init__(self) -> None:
        super().__init__(
            "this cluster has no metadata quorum (it is not in KRaft mode): its metadata is in ZooKeeper or in the "
            "broker's own store",
            code=ErrorCode.UNSUPPORTED_VERSION,
            exception_name="org.apache.kafka.common.errors.UnsupportedVersionException",
        )


class QuorumReplica(NamedTuple):
    node_id: int
    directory_id: str | None
    """None: an old controller, which has none."""
    log_end_offset: int
    last_fetch_ms: int
    """When it fetched last; -1 where that is not known."""
    last_caught_up_ms: int
    endpoints: tuple[str, ...]
    """As `CONTROLLER://host:9093`; empty for observers."""


class Quorum(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]

    @property
    def leader(self) -> QuorumReplica:
        for voter in self.voters:
            if voter.node_id == self.leader_id:
                return voter
        raise refused(ErrorCode.LEADER_NOT_AVAILABLE)

    @property
    def last_voter(self) -> QuorumReplica:
        """The one that is furthest behind."""
        return min(self.voters, key=lambda voter: voter.log_end_offset)


def cluster_id(client: ClusterClient, *, endpoints: int = BROKERS) -> str:
    """`endpoints` are BROKERS or CONTROLLERS, whichever were connected to."""
    answer = client.ask(DescribeClusterRequest(endpoint_type=endpoints), DescribeClusterResponse)
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    return answer.cluster_id


def describe_quorum(client: ClusterClient) -> Quorum:
    """NoQuorum where the cluster is not in KRaft mode."""
    asked = RequestTopicData(topic_name=METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])
    try:
        answer = client.ask(DescribeQuorumRequest(topics=[asked]), DescribeQuorumResponse)
    except UnsupportedByBroker:
        raise NoQuorum from None
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    (found,) = (one for topic in answer.topics for one in topic.partitions)
    if found.error_code:
        raise refused(found.error_code, found.error_message)
    endpoints = {
        node.node_id: tuple(f"{one.name}://{one.host}:{one.port}" for one in node.listeners)
        for node in answer.nodes
    }
    return Quorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        [_replica(one, endpoints.get(one.replica_id, ())) for one in found.current_voters],
        [_replica(one, ()) for one in found.observers],
    )


def _replica(state: ReplicaState, endpoints: tuple[str, ...]) -> QuorumReplica:
    directory_id = bytes(state.replica_directory_id)
    return QuorumReplica(
        state.replica_id,
        None if directory_id == NO_ID else id_text(directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
        endpoints,
    )


def remove_controller(client: ClusterClient, controller_id: int, directory_id: bytes) -> None:
    """Takes a voter out of the quorum. Refused where it is none; NoQuorum where there is no quorum."""
    request = RemoveRaftVoterRequest(voter_id=controller_id, voter_directory_id=directory_id, cluster_id=None)
    try:
        answer = client.ask(request, RemoveRaftVoterResponse)
    except UnsupportedByBroker:
        raise NoQuorum from None
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
