"""A plan cut into subtopologies: what runs as one task for one partition.

Rows meet other partitions only through topics: at a `Repartition`, and between the two sides of a `ForeignKeyJoin`. Everything
that is
joined by other edges is one subtopology. The topics that it reads have equally many partitions: partition 3 of each belongs to
task 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.streams.kernel.needs import Needs, retention_of
from penstock.streams.kernel.operators.foreign_keys import (
    answer_topic,
    subscription_store,
    subscription_topic,
)
from penstock.streams.kernel.operators.stream_joins import retention_of as join_retention_of
from penstock.streams.kernel.operators.stream_joins import side_store, waits
from penstock.streams.kernel.operators.stream_joins import waiting_store as join_waiting_store
from penstock.streams.kernel.operators.suppressing import waiting_store
from penstock.streams.kernel.operators.writing import repartition_topic
from penstock.streams.kernel.plan_task import PlanTask
from penstock.streams.kernel.records import OutputRecord, Row
from penstock.streams.kernel.stores import Store, StoreSpec
from penstock.streams.kernel.task import OnError
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node, Plan


@dataclass(frozen=True, slots=True)
class Subtopology:
    """Topics of the plan's own (`internal`, `internal_sinks`) have the names that Kafka Streams gives them behind the
    application id
    and a dash. `global_topics` are read whole, all partitions, by every task."""

    number: int
    nodes: tuple[Node, ...]
    topics: tuple[str, ...]
    internal: tuple[str, ...]
    sinks: tuple[str, ...]
    internal_sinks: tuple[str, ...]
    stores: tuple[StoreSpec, ...]
    global_topics: tuple[str, ...] = ()
    plan: Plan = field(default=Plan(()), compare=False, repr=False)

    def make_task(
        self,
        *,
        partition: int,
        stores: Mapping[str, Store],
        output: Callable[[OutputRecord], None],
        on_error: OnError,
        registry: Any = None,
        topic_names: Callable[[str], str] | None = None,
        deliver: Callable[[Row], None] | None = None,
        stream_time: int = -1,
    ) -> PlanTask:
        """`stores` by the names of `self.stores`. `topic_names` gives the names outside of all topics, by their names here;
        without
        it they are the same. `stream_time` is what the task said when it was last flushed."""
        return PlanTask(
            self.nodes,
            self.plan,
            partition=partition,
            stores=stores,
            output=output,
            on_error=on_error,
            registry=registry,
            topic_names=topic_names if topic_names is not None else _same,
            deliver=deliver,
            stream_time=stream_time,
        )


def _same(name: str) -> str:
    return name


def cut(plan: Plan) -> tuple[Subtopology, ...]:
    """In the order in which rows flow, as far as they flow in one direction."""
    needs = Needs(plan)
    groups = _groups(needs.nodes)
    return tuple(_subtopology(number, group, needs, plan) for number, group in enumerate(groups))


def partition_counts(subtopologies: Iterable[Subtopology], counts: Mapping[str, int]) -> dict[str, int]:
    """How many partitions each internal topic needs: as many as the source topics that the same task reads; where it reads only
    internal topics, as many as the topics that flow into it have. `counts` are those of the source topics."""
    found: dict[str, int] = {}
    parts = tuple(subtopologies)
    for _ in range(len(parts) + 1):
        for part in parts:
            known = [counts[topic] for topic in part.topics if topic in counts]
            if known:
                found.update((topic, max(known)) for topic in part.internal)
        for part in parts:
            if any(topic in counts for topic in part.topics):
                continue
            into = [
                each
                for other in parts
                if set(other.internal_sinks) & set(part.internal)
                for each in tasks_of(other, counts, found)
            ]
            if into:
                found.update((topic, max(into)) for topic in part.internal)
    return found


def tasks_of(part: Subtopology, counts: Mapping[str, int], internal: Mapping[str, int]) -> list[int]:
    """The numbers of partitions that are known of what a subtopology reads."""
    return [counts[topic] for topic in part.topics if topic in counts] + [
        internal[topic] for topic in part.internal if topic in internal
    ]


def _groups(all_nodes: tuple[Node, ...]) -> list[list[Node]]:
    """Nodes that share a task. A repartition belongs to those behind it, a foreign-key join to its left side."""
    group_of = {node.name: {node.name} for node in all_nodes}
    globals_ = {name for node in all_nodes for name in _global_names(node)}

    def join(one: Node, other: Node) -> None:
        if group_of[one.name] is not group_of[other.name]:
            both = group_of[one.name] | group_of[other.name]
            for name in both:
                group_of[name] = both

    by_topic: dict[str, Node] = {}
    for node in all_nodes:
        if isinstance(node, nodes.Read) and node.name not in globals_:
            join(node, by_topic.setdefault(node.source.topic, node))
        for at, each in enumerate(nodes.inputs(node)):
            crosses = isinstance(node, nodes.Repartition) or (
                isinstance(node, nodes.ForeignKeyJoin) and at == 1
            )
            is_copied = isinstance(node, nodes.StreamTableJoin) and node.is_global and at == 1
            if not crosses and not is_copied:
                join(each, node)
    groups: dict[int, list[Node]] = {}
    for node in all_nodes:
        if node.name not in globals_:
            groups.setdefault(id(group_of[node.name]), []).append(node)
    return list(groups.values())


def _global_names(node: Node) -> set[str]:
    if isinstance(node, nodes.StreamTableJoin) and node.is_global:
        return {each.name for each in Plan((node.right,)).nodes()}
    return set()


def _subtopology(number: int, group: list[Node], needs: Needs, plan: Plan) -> Subtopology:
    names = {node.name for node in group}
    topics, internal, sinks, internal_sinks = _Names(), _Names(), _Names(), _Names()
    stores: dict[str, StoreSpec] = {}
    copied = [each for node in group for each in _global_nodes(node)]
    for node in group:
        match node:
            case nodes.Read():
                topics.add(node.source.topic)
            case nodes.Repartition():
                internal.add(repartition_topic(node))
            case nodes.Write():
                sinks.add(node.topic)
            case nodes.ForeignKeyJoin():
                internal.add(answer_topic(node))
                internal_sinks.add(subscription_topic(node))
            case _:
                pass
        for spec in _stores(node, needs):
            stores[spec.name] = spec
    for node in needs.nodes:
        if isinstance(node, nodes.Repartition) and node.input.name in names:
            internal_sinks.add(repartition_topic(node))
        if isinstance(node, nodes.ForeignKeyJoin) and node.right.name in names:
            internal.add(subscription_topic(node))
            internal_sinks.add(answer_topic(node))
            stores[subscription_store(node)] = StoreSpec(subscription_store(node))
    for node in copied:
        for spec in _stores(node, needs):
            stores[spec.name] = spec
    return Subtopology(
        number,
        (*copied, *group),
        topics.all(),
        internal.all(),
        sinks.all(),
        internal_sinks.all(),
        tuple(stores.values()),
        tuple(node.source.topic for node in copied if isinstance(node, nodes.Read)),
        plan,
    )


class _Names:
    """In the order of their first mention."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, name: str) -> None:
        self._names[name] = None

    def all(self) -> tuple[str, ...]:
        return tuple(self._names)


def _global_nodes(node: Node) -> tuple[Node, ...]:
    return (
        tuple(Plan((node.right,)).nodes())
        if isinstance(node, nodes.StreamTableJoin) and node.is_global
        else ()
    )


def _stores(node: Node, needs: Needs) -> list[StoreSpec]:
    match node:
        case nodes.Aggregate():
            kept_ms = 0 if node.window is None else retention_of(node.window, needs.grace_ms(node))
            return [StoreSpec(node.name, kept_ms)]
        case nodes.ToTable():
            return [StoreSpec(node.name)]
        case nodes.Suppress():
            own = [StoreSpec(node.name)] if needs.wants_store(node) else []
            return [*own, StoreSpec(waiting_store(node))]
        case nodes.StreamStreamJoin():
            kept_ms = join_retention_of(node)
            sides = [StoreSpec(side_store(node, side), kept_ms) for side in (0, 1)]
            return [*sides, StoreSpec(join_waiting_store(node))] if waits(node) else sides
        case nodes.PythonProcessor():
            return [StoreSpec(f"{node.name}-{name}") for name in node.stores]
        case nodes.Read() if needs.wants_store(node):
            return [StoreSpec(node.name, is_logged=False, source_topic=node.source.topic)]
        case _:
            return [StoreSpec(node.name)] if needs.wants_store(node) else []
