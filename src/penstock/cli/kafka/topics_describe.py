"""kafka-topics --describe: topics with their settings, then their partitions, filtered as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.cli.clients import Connection, admin_types, metadata, result
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.kafka.java_order import in_hash_map_order
from penstock.cli.kafka.options import Options
from penstock.cli.kafka.topic_filter import chosen_topics
from penstock.cli.kafka.topics import PARTITION_REPORTS, ensure_exists
from penstock.model.ids import NO_ID, TopicPartition, id_from_text, id_text

if TYPE_CHECKING:
    from penstock.cli.moves.model import Reassignment
    from penstock.cli.wire_client import WireClient

DEFAULT_CONFIG_SOURCE = 5
NO_LEADER = -1
REPLICA_IDS_UNKNOWN = "N/A"
CONTROLLER_PATIENCE_S = 5.0


class PartitionDescription(NamedTuple):
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None
    """Eligible leader replicas; None where the broker was asked in a way that does not tell."""
    last_known_elr: list[int] | None
    reassignment: Reassignment | None = None

    @property
    def replication_factor(self) -> int:
        """Without the replicas that are only being added. A reassignment that ended before the partition was asked for does
        not count, as in Kafka."""
        move = self.reassignment
        if move is None or set(self.replicas).isdisjoint([*move.adding, *move.removing]):
            return len(self.replicas)
        return len(move.origin)


class TopicDescription(NamedTuple):
    name: str
    topic_id: str | None
    partitions: list[PartitionDescription]


def describe(given: Options, connection: Connection) -> None:
    admin = connection.admin()
    descriptions = _wanted(admin, given, connection)
    if not descriptions:
        return
    live_brokers = set(metadata(admin).brokers)
    settings = topic_settings(admin, [description.name for description in descriptions])
    for description in _with_reassignments(connection, descriptions):
        _print_topic(given, description, settings[description.name], live_brokers)


def _with_reassignments(connection: Connection, topics: list[TopicDescription]) -> list[TopicDescription]:
    """As far as somebody says so: librdkafka cannot ask, and topics are shown while there is no controller, too."""
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.moves.cluster import ongoing

    partitions = [TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions]
    try:
        with ClusterClient(connection) as client:
            moving = ongoing(client, partitions, patience_s=CONTROLLER_PATIENCE_S)
    except (Unreachable, Refused):
        return topics
    return [
        topic._replace(
            partitions=[
                one._replace(reassignment=moving.get(TopicPartition(topic.name, one.partition)))
                for one in topic.partitions
            ]
        )
        for topic in topics
    ]


def _wanted(admin: Any, given: Options, connection: Connection) -> list[TopicDescription]:
    names = list(metadata(admin).topics)
    exclude_internal = given.has("exclude-internal")
    limit = given.integer("partition-size-limit-per-response") or 2000
    wanted_id = _wanted_id(given)
    if wanted_id is None:
        topics = chosen_topics(names, given.value("topic"), exclude_internal=exclude_internal)
        ensure_exists(topics, given)
        return describe_topics(admin, connection, topics, partition_limit=limit)
    everything = chosen_topics(names, None, exclude_internal=exclude_internal)
    descriptions = describe_topics(admin, connection, everything, partition_limit=limit)
    found = [description for description in descriptions if description.topic_id == wanted_id]
    if not found and not given.has("if-exists"):
        raise UserError(f"TopicId '{wanted_id}' does not exist as expected")
    return found


def _wanted_id(given: Options) -> str | None:
    text = given.value("topic-id")
    if text is None:
        return None
    try:
        raw = id_from_text(text)
    except ValueError:
        decoded = len(text) * 6 // 8
        raise UserError(
            f"Input string `{text}` decoded as {decoded} bytes, which is not equal to the expected 16 bytes "
            "of a base64-encoded UUID"
        ) from None
    return None if raw == NO_ID else id_text(raw)


def describe_topics(
    admin: Any, connection: Connection, topics: list[str], *, partition_limit: int = 2000
) -> list[TopicDescription]:
    """In the order of the names. Asked over the wire where possible: librdkafka does not tell of eligible leader replicas."""
    if not topics:
        return []
    from penstock.cli.wire_client import UnsupportedByBroker

    try:
        with connection.wire() as client:
            return _over_the_wire(client, topics, partition_limit)
    except UnsupportedByBroker:
        return _by_librdkafka(admin, topics)


def _over_the_wire(client: WireClient, topics: list[str], partition_limit: int) -> list[TopicDescription]:
    from penstock.cli.error_names import detail, full_exception_name
    from penstock.wire.messages.describe_topic_partitions import (
        Cursor,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        TopicRequest,
    )

    found: dict[str, TopicDescription] = {}
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics], response_partition_limit=partition_limit
    )
    while True:
        answer = client.ask(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                raise Refused(
                    detail(topic.error_code),
                    code=topic.error_code,
                    exception_name=full_exception_name(topic.error_code),
                )
            description = found.setdefault(name, TopicDescription(name, id_text(bytes(topic.topic_id)), []))
            description.partitions.extend(
                PartitionDescription(
                    one.partition_index,
                    one.leader_id,
                    list(one.replica_nodes),
                    list(one.isr_nodes),
                    list(one.eligible_leader_replicas or ()),
                    list(one.last_known_elr or ()),
                )
                for one in topic.partitions
            )
        cursor = answer.next_cursor
        if cursor is None:
            return [found[name] for name in topics if name in found]
        # The broker takes the topics in order of name and goes on from the cursor.
        request.cursor = Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
        request.topics = [TopicRequest(name=name) for name in topics if name >= cursor.topic_name]


def _by_librdkafka(admin: Any, topics: list[str]) -> list[TopicDescription]:
    import base64

    from confluent_kafka import TopicCollection

    futures = admin.describe_topics(TopicCollection(topics))
    descriptions = []
    for name in topics:
        topic = result(futures[name])
        raw = base64.b64decode(str(topic.topic_id) + "==") if topic.topic_id is not None else NO_ID
        partitions = [
            PartitionDescription(
                one.id,
                one.leader.id if one.leader is not None else NO_LEADER,
                [node.id for node in one.replicas],
                [node.id for node in one.isr],
                None,
                None,
            )
            for one in topic.partitions
        ]
        descriptions.append(TopicDescription(name, id_text(raw[:16]), partitions))
    return descriptions


def topic_settings(admin: Any, topics: list[str]) -> dict[str, dict[str, Any]]:
    """The configuration entries of each topic, by name, in the order in which the broker sent them."""
    if not topics:
        return {}
    types = admin_types()
    futures = admin.describe_configs(
        [types.ConfigResource(types.ResourceType.TOPIC, name) for name in topics]
    )
    return {resource.name: result(future) for resource, future in futures.items()}


def _print_topic(
    given: Options, topic: TopicDescription, settings: dict[str, Any], live_brokers: set[int]
) -> None:
    is_report = any(given.has(report) for report in PARTITION_REPORTS)
    only_overrides = given.has("topics-with-overrides")
    overridden = [name for name, entry in settings.items() if entry.source != DEFAULT_CONFIG_SOURCE]
    partitions = sorted(topic.partitions, key=lambda one: one.partition)
    if not is_report and (overridden or not only_overrides) and partitions:
        listed = [name for name in in_hash_map_order(list(settings)) if name in overridden]
        configs = ",".join(f"{name}={settings[name].value}" for name in listed)
        topic_id = (
            ""
            if topic.topic_id is None or topic.topic_id == id_text(NO_ID)
            else f"\tTopicId: {topic.topic_id}"
        )
        print(
            f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(partitions)}"
            f"\tReplicationFactor: {partitions[0].replication_factor}\tConfigs: {configs}"
        )
    if only_overrides:
        return
    min_isr = int(settings["min.insync.replicas"].value) if "min.insync.replicas" in settings else 1
    for partition in partitions:
        if not is_report or _is_reported(given, partition, live_brokers, min_isr):
            print(_partition_line(topic.name, partition))


def _is_reported(
    given: Options, partition: PartitionDescription, live_brokers: set[int], min_isr: int
) -> bool:
    has_leader = partition.leader != NO_LEADER
    in_sync = len(partition.isr)
    return (
        (given.has("under-replicated-partitions") and in_sync < partition.replication_factor)
        or (given.has("unavailable-partitions") and (not has_leader or partition.leader not in live_brokers))
        or (given.has("under-min-isr-partitions") and (not has_leader or in_sync < min_isr))
        or (given.has("at-min-isr-partitions") and in_sync == min_isr)
    )


def _partition_line(topic: str, partition: PartitionDescription) -> str:
    leader = "none" if partition.leader == NO_LEADER else partition.leader
    move = partition.reassignment
    moves = (
        f"\tAdding Replicas: {_ids(move.adding)}\tRemoving Replicas: {_ids(move.removing)}" if move else ""
    )
    return (
        f"\tTopic: {topic}\tPartition: {partition.partition}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moves}"
        f"\tElr: {_ids(partition.elr)}\tLastKnownElr: {_ids(partition.last_known_elr)}"
    )


def _ids(brokers: list[int] | None) -> str:
    return REPLICA_IDS_UNKNOWN if brokers is None else ",".join(map(str, brokers))
