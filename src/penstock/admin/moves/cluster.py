"""The requests of a reassignment: what moves, what shall, where replicas lie, and the configs that slow them down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from penstock.admin.configs import (
    ALTER_TIMEOUT_S,
    BROKER,
    OF_BROKER,
    OF_TOPIC,
    TOPIC,
    Change,
    changed_resource,
    topics_configs,
)
from penstock.admin.moves.model import Assignment, LogDirMove, LogDirs, Reassignment, Replica
from penstock.admin.moves.throttles import EVERY_REPLICA, REPLICATION_RATES, TOPIC_THROTTLES
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.error_names import detail, refused
from penstock.client.errors import Refused, Unreachable
from penstock.client.patience import Patience
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, by_topic
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from penstock.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

CONTROLLER_TIMEOUT_S = 60.0
SHORT_TIMEOUT_S = 5.0


def ongoing(
    client: ClusterClient,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    patience_s: float | None = None,
) -> dict[TopicPartition, Reassignment]:
    """Those of these partitions that are being reassigned, or all that are; in order. `patience_s` is for who would rather
    not know than wait for long."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    answer = client.ask_controller(
        ListPartitionReassignmentsRequest(topics=topics, timeout_ms=int(CONTROLLER_TIMEOUT_S * 1000)),
        ListPartitionReassignmentsResponse,
        codes=lambda answered: [answered.error_code],
        timeout_s=CONTROLLER_TIMEOUT_S if patience_s is None else SHORT_TIMEOUT_S,
        patience_s=patience_s,
    )
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    found = {
        TopicPartition(topic.name, one.partition_index): Reassignment(
            list(one.replicas), list(one.adding_replicas), list(one.removing_replicas)
        )
        for topic in answer.topics
        for one in topic.partitions
    }
    return dict(sorted(found.items()))


def start(
    client: ClusterClient,
    wanted: Mapping[TopicPartition, list[int] | None],
    *,
    may_change_factor: bool = True,
) -> dict[TopicPartition, Refused]:
    """Starts reassignments, or ends them where the brokers are None. Returns why, where one is refused."""
    topics = [
        ReassignableTopic(
            name=topic,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=wanted[TopicPartition(topic, index)])
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(wanted).items()
    ]
    answer = client.ask_controller(
        AlterPartitionReassignmentsRequest(
            topics=topics,
            allow_replication_factor_change=may_change_factor,
            timeout_ms=int(CONTROLLER_TIMEOUT_S * 1000),
        ),
        AlterPartitionReassignmentsResponse,
        codes=lambda answered: [answered.error_code],
        timeout_s=CONTROLLER_TIMEOUT_S,
    )
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): refused(one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code
    }


def replicas_of(client: ClusterClient, topics: Iterable[str]) -> Assignment:
    """The brokers of every partition of the topics; Refused where one is not there."""
    names = sorted(set(topics))
    found: Assignment = {}
    for topic in client.metadata(names).topics if names else ():
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise refused(topic.error_code, f"Topic {topic.name} not found.")
        if topic.error_code:
            raise refused(topic.error_code)
        for one in topic.partitions:
            found[TopicPartition(topic.name or "", one.partition_index)] = list(one.replica_nodes)
    return found


def known_replicas(client: ClusterClient, topics: Iterable[str]) -> Assignment:
    """The brokers of every partition of those of the topics that are there."""
    names = sorted(set(topics))
    return {
        TopicPartition(topic.name or "", one.partition_index): list(one.replica_nodes)
        for topic in (client.metadata(names).topics if names else ())
        for one in topic.partitions
    }


def log_dir_moves(client: ClusterClient, replicas: Iterable[Replica]) -> dict[Replica, LogDirMove]:
    """Where the replicas lie. Those of brokers that are not there, or that do not have them, are left out."""
    found: dict[Replica, LogDirMove] = {}
    for broker, directory in _log_dirs(client, replicas):
        for topic in directory.topics:
            for one in topic.partitions:
                replica = Replica(broker, topic.name, one.partition_index)
                known = found.get(replica, LogDirMove(None, None))
                found[replica] = (
                    known._replace(future=directory.log_dir)
                    if one.is_future_key
                    else known._replace(current=directory.log_dir)
                )
    return found


def bytes_at_destination(client: ClusterClient, moving: Mapping[TopicPartition, Reassignment]) -> int:
    """How much the replicas that are being added hold already."""
    replicas = [
        Replica(broker, one.topic, one.partition)
        for one, reassignment in moving.items()
        for broker in reassignment.adding
    ]
    return sum(
        one.partition_size
        for _, directory in _log_dirs(client, replicas)
        for topic in directory.topics
        for one in topic.partitions
    )


def _log_dirs(
    client: ClusterClient, replicas: Iterable[Replica]
) -> Iterator[tuple[int, DescribeLogDirsResult]]:
    """What each broker that answers says of its replicas among these."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for replica in replicas:
        by_broker.setdefault(replica.broker, []).append(TopicPartition(replica.topic, replica.partition))
    for node in client.nodes() if by_broker else ():
        if node.node_id in by_broker:
            topics = [
                DescribableLogDirTopic(topic=topic, partitions=indexes)
                for topic, indexes in by_topic(by_broker[node.node_id]).items()
            ]
            try:
                answer = client.ask_node(node, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
            except Unreachable:
                continue  # it died, and the others do not know it yet
            for directory in answer.results:
                yield node.node_id, directory


def alter_log_dirs(client: ClusterClient, wanted: LogDirs, *, timeout_s: float) -> tuple[LogDirs, LogDirs]:
    """Starts moves within brokers. A replica that is not there yet is asked for again until the deadline.

    Returns what was started and what was not.
    """
    nodes = {node.node_id: node for node in client.nodes()}
    pending, started = dict(wanted), {}
    patience = Patience(timeout_s)
    while pending:
        for broker in sorted({replica.broker for replica in pending}):
            if broker in nodes:
                for replica in _alter_log_dirs_of(client, nodes[broker], pending):
                    started[replica] = pending.pop(replica)
        if not pending or not patience.pause():
            break
    return started, pending


def _alter_log_dirs_of(client: ClusterClient, node: BrokerNode, wanted: LogDirs) -> list[Replica]:
    by_path: dict[str, list[TopicPartition]] = {}
    for replica, path in wanted.items():
        if replica.broker == node.node_id:
            by_path.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )
    started = []
    for topic in client.ask_node(node, request, AlterReplicaLogDirsResponse).results:
        for one in topic.partitions:
            replica = Replica(node.node_id, topic.topic_name, one.partition_index)
            if not one.error_code:
                started.append(replica)
            elif one.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise refused(one.error_code, f"Failed to alter dir for {replica}: {detail(one.error_code)}")
    return started


def alter_topics(
    client: ClusterClient, changes: Mapping[str, Change], *, skips_unknown: bool = False
) -> None:
    """`skips_unknown`: a topic that is not there any more is no error."""
    if changes:
        request = IncrementalAlterConfigsRequest(
            resources=[changed_resource(TOPIC, name, change) for name, change in changes.items()]
        )
        answer = client.ask_controller(
            request,
            IncrementalAlterConfigsResponse,
            codes=lambda answered: [one.error_code for one in answered.responses],
            timeout_s=CONTROLLER_TIMEOUT_S,
        )
        _refuse(answer, passed={ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if skips_unknown else frozenset())


def alter_brokers(client: ClusterClient, changes: Mapping[int, Change]) -> list[int]:
    """Each broker is asked itself: none takes another's configs. Returns those that are not there to be asked."""
    absent = set(changes)
    for node in client.nodes():
        if node.node_id in changes:
            resource = changed_resource(BROKER, str(node.node_id), changes[node.node_id])
            request = IncrementalAlterConfigsRequest(resources=[resource])
            try:
                answer = client.ask_node(
                    node, request, IncrementalAlterConfigsResponse, timeout_s=ALTER_TIMEOUT_S
                )
            except Unreachable:
                continue
            _refuse(answer)
            absent.remove(node.node_id)
    return sorted(absent)


def _refuse(answer: IncrementalAlterConfigsResponse, *, passed: Set[int] = frozenset()) -> None:
    for one in answer.responses:
        if one.error_code and one.error_code not in passed:
            raise refused(one.error_code, one.error_message)


def throttled_topics(client: ClusterClient) -> list[str]:
    """Those that name replicas to be slowed down. "*" does not count: no reassignment writes it."""
    names = [topic.name or "" for topic in client.metadata().topics]
    return sorted(
        described.resource_name
        for described in topics_configs(client, names, TOPIC_THROTTLES)
        if any(one.config_source == OF_TOPIC and one.value != EVERY_REPLICA for one in described.configs)
    )


def throttled_brokers(client: ClusterClient) -> list[int]:
    """Those that have a rate at which they replicate, as far as they answer."""
    found = []
    for node in client.nodes():
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=str(node.node_id), configuration_keys=REPLICATION_RATES
        )
        try:
            answer = client.ask_node(
                node, DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse
            )
        except Unreachable:
            continue
        for described in answer.results:
            if described.error_code:
                raise refused(described.error_code, described.error_message)
            if any(one.config_source == OF_BROKER for one in described.configs):
                found.append(node.node_id)
    return found
