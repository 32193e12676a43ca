"""Offsets and lag of groups, under the names of kafka_exporter and of kafka-lag-exporter, and Kafka's own counts of groups.

Each group is on the page of its coordinator, also when nobody is in it. A lag is never negative.
"""

from collections.abc import Iterator
from typing import Final

from penstock.broker.metrics.group_facts import STATES, GroupFacts, GroupsFacts
from penstock.broker.metrics.lag import lag_seconds
from penstock.broker.metrics.text import Family, Row, escaped, one
from penstock.groups.consumer_protocol import assigned_partitions
from penstock.groups.records import offset_of
from penstock.model.ids import TopicPartition

NOBODY: Final = ("unknown", "unknown", "unknown")
"""kafka-lag-exporter's words for a partition that nobody reads: host, member, client."""

Owners = dict[tuple[str, int], tuple[str, str, str]]


class _Rows:
    def __init__(self) -> None:
        self.current: list[Row] = []
        self.lag: list[Row] = []
        self.current_sum: list[Row] = []
        self.lag_sum: list[Row] = []
        self.members: list[Row] = []
        self.offset: list[Row] = []
        self.group_lag: list[Row] = []
        self.group_lag_seconds: list[Row] = []
        self.max_lag: list[Row] = []
        self.max_lag_seconds: list[Row] = []
        self.sum_lag: list[Row] = []
        self.topic_sum_lag: list[Row] = []


def families(facts: GroupsFacts) -> Iterator[Family]:
    yield from _counts(facts)
    rows = _Rows()
    points = {place: end.looks.points() for place, end in facts.ends.items()}
    for group in facts.groups:
        _add(rows, group, facts, points)
    yield Family("kafka_consumergroup_current_offset", "Committed offset.", rows.current)
    yield Family("kafka_consumergroup_lag", "Records between the committed offset and the end.", rows.lag)
    yield Family(
        "kafka_consumergroup_current_offset_sum",
        "Committed offsets of a topic's partitions.",
        rows.current_sum,
    )
    yield Family("kafka_consumergroup_lag_sum", "Lag of a topic's partitions.", rows.lag_sum)
    yield Family("kafka_consumergroup_members", "Members of the group.", rows.members)
    yield Family("kafka_consumergroup_group_offset", "Committed offset, and who reads it.", rows.offset)
    yield Family("kafka_consumergroup_group_lag", "Lag in records, and who reads it.", rows.group_lag)
    yield Family(
        "kafka_consumergroup_group_lag_seconds",
        "How long ago the next record that the group reads was written.",
        rows.group_lag_seconds,
    )
    yield Family("kafka_consumergroup_group_max_lag", "Of the partition that lags most.", rows.max_lag)
    yield Family(
        "kafka_consumergroup_group_max_lag_seconds", "Of the partition that lags most.", rows.max_lag_seconds
    )
    yield Family("kafka_consumergroup_group_sum_lag", "Of all partitions.", rows.sum_lag)
    yield Family("kafka_consumergroup_group_topic_sum_lag", "Of a topic's partitions.", rows.topic_sum_lag)
    yield one(
        "penstock_metrics_left_out_groups",
        "Groups whose offsets are not on this page: see penstock.metrics.max.groups.",
        facts.left_out_groups,
    )


def _counts(facts: GroupsFacts) -> Iterator[Family]:
    prefix = "kafka_coordinator_group_groupmetadatamanager"
    yield one(f"{prefix}_numgroups", "Groups that this broker coordinates.", sum(facts.states.values()))
    for state in STATES:
        yield one(
            f"{prefix}_numgroups{state.lower()}", f"Groups that are {state}.", facts.states.get(state, 0)
        )
    yield one(f"{prefix}_numoffsets", "Offsets that are committed.", facts.offset_count)
    yield Family(
        "kafka_server_group_coordinator_metrics_group_count",
        "Groups by protocol.",
        [({"protocol": protocol}, count) for protocol, count in facts.protocols.items()],
    )
    yield Family(
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        "Groups of the newer protocol by state, with classic groups in theirs.",
        [({"state": state}, count) for state, count in facts.states.items()],
    )


def _add(
    rows: _Rows,
    group: GroupFacts,
    facts: GroupsFacts,
    points: dict[TopicPartition, tuple[tuple[float, ...], tuple[int, ...]]],
) -> None:
    name = escaped(group.name)
    own = f'{{consumergroup="{name}"'
    theirs = f'{{cluster_name="{escaped(facts.cluster_id)}",group="{name}"'
    owners = _owners(group, facts)
    rows.members.append((f"{own}}}", len(group.members)))
    of_topics: dict[str, list[int]] = {}  # by the name as it is written: committed, lag
    most, most_seconds = 0, 0.0
    for place, value in group.offsets.items():
        topic, index = escaped(place[0]), place[1]
        committed = offset_of(value)
        if committed < 0:
            continue
        of_topic = of_topics.get(topic)
        if of_topic is None:
            of_topic = of_topics[topic] = [0, 0]
        of_topic[0] += committed
        text = f',topic="{topic}",partition="{index}"'
        rows.current.append((f"{own}{text}}}", committed))
        host, member, client = owners.get(place, NOBODY)
        labels = f'{theirs}{text},member_host="{host}",consumer_id="{member}",client_id="{client}"}}'
        rows.offset.append((labels, committed))
        end = facts.ends.get(place)
        if end is None:
            continue  # nobody knows where it ends: its topic is gone, or its leader
        lag = max(end.end_offset - committed, 0)
        of_topic[1] += lag
        times, ends = points[place]
        seconds = lag_seconds(times, ends, committed=committed, end_offset=end.end_offset, now=facts.now_s)
        most, most_seconds = max(most, lag), max(most_seconds, seconds)
        rows.lag.append((f"{own}{text}}}", lag))
        rows.group_lag.append((labels, lag))
        rows.group_lag_seconds.append((labels, round(seconds, 3)))
    for topic, (committed, lag) in of_topics.items():
        rows.current_sum.append((f'{own},topic="{topic}"}}', committed))
        rows.lag_sum.append((f'{own},topic="{topic}"}}', lag))
        rows.topic_sum_lag.append((f'{theirs},topic="{topic}"}}', lag))
    if of_topics:
        rows.max_lag.append((f"{theirs}}}", most))
        rows.max_lag_seconds.append((f"{theirs}}}", round(most_seconds, 3)))
        rows.sum_lag.append((f"{theirs}}}", sum(lag for _, lag in of_topics.values())))


def _owners(group: GroupFacts, facts: GroupsFacts) -> Owners:
    owners: Owners = {}
    for member in group.members:
        who = (escaped(member.host.removeprefix("/")), escaped(member.member_id), escaped(member.client_id))
        if isinstance(member.assignment, bytes):
            owners.update(dict.fromkeys(assigned_partitions(member.assignment), who))
            continue
        for topic_id, indexes in member.assignment.items():
            topic = facts.topic_names.get(topic_id)
            if topic is not None:
                owners.update({(topic, index): who for index in indexes})
    return owners
