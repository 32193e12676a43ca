"""kafka-topics --describe: topics with their configs, then their partitions, filtered as asked."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.admin.configs import ConfigEntry
from penstock.admin.topic_filter import chosen_topics
from penstock.admin.topics import (
    NO_LEADER,
    PARTITIONS_PER_ANSWER,
    PartitionDescription,
    TopicDescription,
    describe_topics,
    topic_configs,
    topic_names,
    with_reassignments,
)
from penstock.cli.kafka.options import Options
from penstock.cli.kafka.topics import PARTITION_REPORTS, ensure_exists
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.ids import NO_ID, id_from_text, id_text
from penstock.model.java_order import in_hash_map_order

REPLICA_IDS_UNKNOWN = "N/A"


def describe(given: Options, client: ClusterClient) -> None:
    found = with_reassignments(client, _wanted(client, given))
    live_brokers = {node.node_id for node in client.nodes()}
    configs = topic_configs(client, [topic.name for topic in found])
    for topic in found:
        _print_topic(given, topic, configs.get(topic.name, {}), live_brokers)


def _wanted(client: ClusterClient, given: Options) -> list[TopicDescription]:
    names = topic_names(client)
    exclude_internal = given.has("exclude-internal")
    limit = given.integer("partition-size-limit-per-response") or PARTITIONS_PER_ANSWER
    wanted_id = _wanted_id(given)
    if wanted_id is None:
        topics = chosen_topics(names, given.value("topic"), exclude_internal=exclude_internal)
        ensure_exists(topics, given)
        return describe_topics(client, topics, partition_limit=limit)
    everything = chosen_topics(names, None, exclude_internal=exclude_internal)
    descriptions = describe_topics(client, everything, partition_limit=limit)
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


def _print_topic(
    given: Options, topic: TopicDescription, configs: dict[str, ConfigEntry], live_brokers: set[int]
) -> None:
    is_report = any(given.has(report) for report in PARTITION_REPORTS)
    only_overrides = given.has("topics-with-overrides")
    overridden = [name for name, entry in configs.items() if not entry.is_default]
    if not is_report and (overridden or not only_overrides) and topic.partitions:
        listed = [name for name in in_hash_map_order(list(configs)) if name in overridden]
        shown = ",".join(f"{name}={configs[name].value}" for name in listed)
        topic_id = "" if topic.topic_id == id_text(NO_ID) else f"\tTopicId: {topic.topic_id}"
        print(
            f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {topic.partitions[0].replication_factor}\tConfigs: {shown}"
        )
    if only_overrides:
        return
    min_isr = int(configs["min.insync.replicas"].value or 1) if "min.insync.replicas" in configs else 1
    for partition in topic.partitions:
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


def _ids(brokers: Iterable[int] | None) -> str:
    return REPLICA_IDS_UNKNOWN if brokers is None else ",".join(map(str, brokers))
