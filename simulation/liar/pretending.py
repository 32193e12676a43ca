"""Answers that name brokers, changed to name the nodes of the stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.wire.messages.describe_cluster import DescribeClusterBroker
from penstock.wire.messages.metadata import MetadataResponseBroker
from penstock.wire.schema import ZERO_UUID
from simulation.liar.stage import HOST, Coordination, Leadership, Stage

KINDS_OF_KEYS: Final = {0: "group", 1: "transaction"}
CONTROLLER: Final = 1


def pretend(stage: Stage, node_id: int, request: Any, answer: Any) -> None:
    change = _CHANGES.get(request.API_KEY)
    if change is not None:
        change(stage, node_id, request, answer)


def _metadata(stage: Stage, node_id: int, request: Any, answer: Any) -> None:
    answer.brokers = [
        MetadataResponseBroker(node_id=number, host=HOST, port=port) for number, port in stage.ports.items()
    ]
    answer.controller_id = CONTROLLER
    kept = []
    for topic in answer.topics:
        if topic.name and topic.topic_id != ZERO_UUID:
            stage.topic_names[bytes(topic.topic_id)] = topic.name
        if topic.name and not topic.error_code and stage.forgets(node_id, topic.name):
            if request.topics is None:
                continue  # who asks for all topics hears nothing of it
            topic.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topic.topic_id = ZERO_UUID
            topic.partitions = []
        for one in topic.partitions:
            holder = stage.told_by(node_id, Leadership(topic.name or "", one.partition_index))
            one.leader_id, one.leader_epoch = holder.node_id, holder.epoch
            one.replica_nodes = one.isr_nodes = list(stage.ports)
        kept.append(topic)
    answer.topics = kept


def without_leaders(answer: Any) -> None:
    """An election: metadata that names no leader for the moment."""
    for topic in answer.topics:
        for one in topic.partitions:
            one.error_code = ErrorCode.LEADER_NOT_AVAILABLE
            one.leader_id = -1


def with_one_replica(request: Any) -> bool:
    """The nodes would hold several replicas of a new topic; the broker behind them holds one. True if anything was changed."""
    if request.API_KEY != ApiKey.CREATE_TOPICS:
        return False
    wanted = [topic for topic in request.topics if topic.replication_factor > 1]
    for topic in wanted:
        topic.replication_factor = 1
    return bool(wanted)


def _find_coordinator(stage: Stage, node_id: int, request: Any, answer: Any) -> None:
    kind = KINDS_OF_KEYS.get(request.key_type)
    if kind is None:
        return
    for found in answer.coordinators:
        if not found.error_code:
            holder = stage.told_by(node_id, Coordination(kind, found.key))
            found.node_id, found.host, found.port = holder.node_id, HOST, stage.ports[holder.node_id]
    if not answer.coordinators and not answer.error_code:
        holder = stage.told_by(node_id, Coordination(kind, request.key))
        answer.node_id, answer.host, answer.port = holder.node_id, HOST, stage.ports[holder.node_id]


def _describe_cluster(stage: Stage, node_id: int, request: Any, answer: Any) -> None:
    answer.brokers = [
        DescribeClusterBroker(broker_id=number, host=HOST, port=port) for number, port in stage.ports.items()
    ]
    answer.controller_id = CONTROLLER


_CHANGES: Final[Mapping[int, Callable[[Stage, int, Any, Any], None]]] = {
    ApiKey.METADATA: _metadata,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
}
