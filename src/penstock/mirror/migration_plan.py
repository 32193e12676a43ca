"""What a migration would do: topics with their sizes, groups, and what does not come along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.admin import Cluster
from penstock.admin.brokers import endpoints, log_dirs
from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable
from penstock.mirror.copying import OF_TOPIC, Copying
from penstock.mirror.filters import Filter
from penstock.mirror.group_offsets import groups_of
from penstock.mirror.naming import Naming
from penstock.mirror.settings import SOURCE_SETTINGS
from penstock.model.ids import TopicPartition

SOURCE, TARGET = "source", "target"
MADE, THERE = "is made", "is there"
_ACTIVE: Final = frozenset(
    {"Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)


class TopicPlan(NamedTuple):
    name: str
    partitions: int
    offsets: int
    """From the first record to the end; of a compacted topic fewer are there."""
    size_bytes: int | None
    """Of one replica of each partition. None: the brokers do not say."""
    configs: int
    at_target: str


class GroupPlan(NamedTuple):
    name: str
    state: str
    partitions: int
    is_active: bool


class Plan(NamedTuple):
    topics: list[TopicPlan]
    groups: list[GroupPlan]
    left_behind: list[str]
    """What somebody has to take care of, in sentences."""
    problems: list[str]
    """Why it should not be begun like this."""

    def document(self) -> dict[str, Any]:
        return {
            "topics": [one._asdict() for one in self.topics],
            "groups": [one._asdict() for one in self.groups],
            "left_behind": self.left_behind,
            "problems": self.problems,
        }


def values_of(topics: Sequence[str], excluded: Sequence[str]) -> dict[str, Any]:
    """As a flow with these topics has them."""
    values = {setting.name: setting.default for setting in SOURCE_SETTINGS}
    values |= {"topics": list(topics), "topics.exclude": list(excluded)}
    return values | {"heartbeats.replication.enabled": False}


def make_plan(
    source: Cluster, target: Cluster, connection: Connection, values: Mapping[str, Any], groups: Filter
) -> Plan:
    """Refused and Unreachable, of either cluster."""
    naming = Naming(SOURCE, TARGET, is_identity=True)
    copying = Copying(source, target, naming, values)
    found = copying.found()
    there = {one.name: one.partitions for one in target.topics.list(internal=True)}
    spans = source.offsets.spans(*found) if found else {}
    sizes = _sizes(source, connection)
    configs = source.configs.of_topics(*found) if found else {}
    topics = [
        TopicPlan(
            name,
            partitions,
            sum(spans[place].end_offset - spans[place].start_offset for place in _places(name, partitions)),
            None if sizes is None else sum(sizes.get(str(place), 0) for place in _places(name, partitions)),
            sum(1 for one in configs.get(name, {}).values() if one.source_name == OF_TOPIC),
            THERE if name in there else MADE,
        )
        for name, partitions in sorted(found.items())
    ]
    return Plan(
        topics, _groups(source, groups, found), _left_behind(source), list(_problems(found, there, target))
    )


def _places(name: str, partitions: int) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in range(partitions)]


def _sizes(cluster: Cluster, connection: Connection) -> dict[str, int] | None:
    found: dict[str, int] = {}
    try:
        for broker in cluster.ask(endpoints):
            for directory in log_dirs(connection, broker):
                for one in directory["partitions"]:
                    if not one["isFuture"]:
                        found[one["partition"]] = max(found.get(one["partition"], 0), one["size"])
    except (Refused, Unreachable):
        return None
    return found


def _groups(cluster: Cluster, wanted: Filter, topics: Mapping[str, int]) -> list[GroupPlan]:
    states = {one.group_id: one.state for one in cluster.groups.list()}
    found = []
    for name in groups_of(cluster, wanted.passes):
        places = [place for place in cluster.groups.committed(name) if place.topic in topics]
        if places:
            found.append(GroupPlan(name, states.get(name, ""), len(places), states.get(name) in _ACTIVE))
    return found


def _left_behind(cluster: Cluster) -> list[str]:
    told = []
    other = [one.group_id for one in cluster.groups.list() if not one.is_of_consumers]
    if other:
        told.append(
            f"groups that are not of consumers (Connect, streams, share groups): {', '.join(sorted(other))}"
        )
    rules = _asked(lambda: cluster.acls.list())
    beyond = [
        one for one in rules or [] if one.resource_type.lower() != "topic" or one.operation.lower() == "write"
    ]
    if beyond:
        told.append(f"{len(beyond)} access rules: only those to read topics come along (penstock acls)")
    users = _asked(lambda: cluster.users.list())
    if users:
        told.append(f"{len(users)} passwords of users: set them anew, nobody can read them (penstock users)")
    quotas = _asked(lambda: cluster.quotas.list())
    if quotas:
        told.append(f"{len(quotas)} quotas (penstock quotas)")
    told.append("transactions that are open at the switch: their producers begin them anew")
    told.append("schemas of a schema registry, where it keeps them in another cluster")
    return told


def _asked(ask: Any) -> Any:
    try:
        return ask()
    except (Refused, Unreachable):
        return None


def _problems(topics: Mapping[str, int], there: Mapping[str, int], target: Cluster) -> list[str]:
    found = []
    both = sorted(set(topics) & set(there))
    for name in both:
        if there[name] > topics[name]:
            found.append(
                f"{name} has {there[name]} partitions at the target, and {topics[name]} at the source"
            )
    filled = []
    if both and "mm2-offsets.source.internal" not in there:
        spans = target.offsets.spans(*both)
        filled = sorted({place.topic for place, span in spans.items() if span.end_offset})
    if filled:
        found.append(f"the target has records already, which no migration has brought: {', '.join(filled)}")
    if not topics:
        found.append("there is no topic to be copied")
    return found
