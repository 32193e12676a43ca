"""The rows of a view, made from what a look was told ◇."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.client.cluster_client import BrokerNode
from penstock.client.error_names import detail
from penstock.client.leaders import Leader
from penstock.console.clusters.asking import ListedGroup, Members, Sizes
from penstock.console.clusters.model import (
    GroupKind,
    GroupPartition,
    GroupRow,
    PartitionRow,
    TopicRow,
    Totals,
    kind_of,
)
from penstock.console.clusters.rates import total
from penstock.model.ids import TopicPartition, id_text
from penstock.model.internal_topics import is_internal
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseTopic


def leaders_of(described: MetadataResponse, nodes: Mapping[int, BrokerNode]) -> dict[TopicPartition, Leader]:
    return {
        TopicPartition(topic.name or "", one.partition_index): Leader(one.leader_id)
        for topic in described.topics
        for one in topic.partitions
        if one.leader_id in nodes
    }


def topic_row(
    topic: MetadataResponseTopic,
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    rates: Mapping[TopicPartition, float],
    sizes: Sizes,
) -> TopicRow:
    name = topic.name or ""
    partitions = []
    for one in sorted(topic.partitions, key=lambda one: one.partition_index):
        number = one.partition_index
        place = TopicPartition(name, number)
        partitions.append(
            PartitionRow(
                number,
                one.leader_id,
                one.leader_epoch,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                starts.get(place),
                ends.get(place),
                sizes.logs.get((one.leader_id, name, number)),
                rates.get(place),
            )
        )
    spans = [
        max(0, one.end_offset - one.start_offset)
        for one in partitions
        if one.end_offset is not None and one.start_offset is not None
    ]
    known = [one.size_bytes for one in partitions if one.size_bytes is not None]
    paces = [one.per_second for one in partitions if one.per_second is not None]
    return TopicRow(
        name,
        id_text(bytes(topic.topic_id)),
        topic.is_internal or is_internal(name),
        tuple(partitions),
        max((len(one.replicas) for one in partitions), default=0),
        sum(spans) if spans else None,
        sum(known) if known else None,
        sum(paces) if paces else None,
        sum(one.is_offline for one in partitions),
        sum(one.is_under_replicated for one in partitions),
    )


def group_row(
    listed: ListedGroup,
    lags: tuple[GroupPartition, ...],
    members: Members | None,
    rate: float | None,
    error_code: int,
) -> GroupRow:
    kind = kind_of(listed.name, type_name=listed.type_name, protocol=listed.protocol, state=listed.state)
    records = [one.lag for one in lags if one.lag is not None]
    seconds = [one.lag_s for one in lags if one.lag_s is not None]
    return GroupRow(
        listed.name,
        kind,
        listed.state,
        listed.type_name.capitalize() or "Classic",
        listed.protocol,
        listed.coordinator,
        None if members is None else members.number,
        lags,
        tuple(dict.fromkeys(one.partition.topic for one in lags)) or (members.topics if members else ()),
        sum(records) if records else None,
        max(seconds) if seconds else None,
        None if kind is GroupKind.SPARK and not records else rate,
        detail(error_code) if error_code else "",
    )


def readers_of(groups: Iterable[GroupRow]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for group in groups:
        for topic in group.topics:
            found.setdefault(topic, []).append(group.name)
    return {topic: tuple(names) for topic, names in found.items()}


def totals_of(
    rates: Mapping[TopicPartition, float], groups: Mapping[str, GroupRow], by_broker: Mapping[int, Totals]
) -> Totals:
    out = {name: group.per_second for name, group in groups.items() if group.per_second is not None}
    lags = [group.lag for group in groups.values() if group.lag is not None]
    ages = [group.lag_s for group in groups.values() if group.lag_s is not None]

    def summed(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return Totals(
        total({one: rate for one, rate in rates.items() if not is_internal(one.topic)}),
        total(out),
        summed(one.bytes_in for one in by_broker.values()),
        summed(one.bytes_out for one in by_broker.values()),
        summed(one.requests for one in by_broker.values()),
        sum(lags) if lags else (0 if groups else None),
        max(ages) if ages else None,
    )
