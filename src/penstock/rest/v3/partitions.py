"""A topic's partitions, their replicas, where they begin and end, and how they are being reassigned."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.admin import Cluster
from penstock.admin.moves.cluster import ongoing
from penstock.admin.moves.model import Reassignment
from penstock.admin.offsets import spans
from penstock.admin.topics import NO_LEADER, PartitionDescription
from penstock.client.errors import NoSuchTopic, Refused
from penstock.model.ids import TopicPartition
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views, not_found
from penstock.web.call import Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

CONTROLLER_PATIENCE_S = 10.0
_OFFSET_TYPES = {"": True, "earliest": True, "latest": True}


class PartitionsResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        at = f"{CLUSTER}/topics/{{topic}}/partitions"
        for pattern, handler, summary in (
            (at, self.every, "The partitions of a topic."),
            (f"{at}/{{partition}}", self.one, "A partition."),
            (f"{at}/{{partition}}/offset", self.offset, "Where a partition begins and ends."),
            (f"{at}/{{partition}}/replicas", self.replicas, "The replicas of a partition."),
            (f"{at}/{{partition}}/replicas/{{broker}}", self.replica, "A replica."),
            (f"{at}/{{partition}}/reassignment", self.reassignment, "How a partition is being moved."),
            (f"{at}/-/reassignment", self.reassignments, "How the partitions of a topic are being moved."),
            (f"{CLUSTER}/topics/-/partitions/-/reassignment", self.all_reassignments, "Every move that is under way."),
        ):  # fmt: skip
            routes.add("GET", pattern, handler, summary, content=CONTENT)

    async def every(self, call: Call) -> object:
        view, topic = await self._views.of(call), call["topic"]
        found = await view.access.ask(lambda cluster: partitions(cluster, topic))
        return view.links.collection(
            "KafkaPartitionList",
            ("topics", topic, "partitions"),
            (shape(view.links, topic, one) for one in found),
        )

    async def one(self, call: Call) -> object:
        view, topic, number = await self._views.of(call), call["topic"], call.path_number("partition")
        return shape(view.links, topic, await view.access.ask(lambda cluster: _one(cluster, topic, number)))

    async def offset(self, call: Call) -> object:
        view, topic, number = await self._views.of(call), call["topic"], call.path_number("partition")
        kind = (call.query("offset_type") or "").lower()
        if kind not in _OFFSET_TYPES:
            raise HttpError(400, f"offset_type must be earliest or latest, not {kind[:50]}")
        partition = TopicPartition(topic, number)

        def ask(cluster: Cluster) -> tuple[int, int]:
            _one(cluster, topic, number)
            return cluster.ask(lambda client: spans(client, [partition]))[partition]

        start, end = await view.access.ask(ask)
        return view.links.resource(
            "KafkaPartitionWithOffsets", ("topics", topic, "partitions", number, "offset"),
            f"topic={topic}/partition={number}/offset", topic_name=topic, partition_id=number,
            **({} if kind == "latest" else {"earliest_offset": start}),
            **({} if kind == "earliest" else {"latest_offset": end}),
        )  # fmt: skip

    async def replicas(self, call: Call) -> object:
        view, topic, number = await self._views.of(call), call["topic"], call.path_number("partition")
        one = await view.access.ask(lambda cluster: _one(cluster, topic, number))
        return view.links.collection(
            "KafkaReplicaList",
            ("topics", topic, "partitions", number, "replicas"),
            (replica_shape(view.links, topic, one, broker) for broker in one.replicas),
        )

    async def replica(self, call: Call) -> object:
        view, topic, number = await self._views.of(call), call["topic"], call.path_number("partition")
        broker = call.path_number("broker")
        one = await view.access.ask(lambda cluster: _one(cluster, topic, number))
        if broker not in one.replicas:
            raise not_found()
        return replica_shape(view.links, topic, one, broker)

    async def reassignment(self, call: Call) -> object:
        view, topic, number = await self._views.of(call), call["topic"], call.path_number("partition")
        wanted = TopicPartition(topic, number)
        found = await view.access.ask(lambda cluster: _ongoing(cluster, [wanted]))
        if wanted not in found:
            raise not_found()
        return _reassignment(view.links, wanted, found[wanted])

    async def reassignments(self, call: Call) -> object:
        view, topic = await self._views.of(call), call["topic"]
        found = await view.access.ask(
            lambda cluster: _ongoing(
                cluster, [TopicPartition(topic, one.partition) for one in partitions(cluster, topic)]
            )
        )
        return view.links.collection(
            "KafkaReassignmentList",
            ("topics", topic, "partitions", "-", "reassignment"),
            (_reassignment(view.links, where, move) for where, move in found.items()),
        )

    async def all_reassignments(self, call: Call) -> object:
        view = await self._views.of(call)
        found = await view.access.ask(lambda cluster: _ongoing(cluster, None))
        return view.links.collection(
            "KafkaReassignmentList",
            ("topics", "-", "partitions", "-", "reassignment"),
            (_reassignment(view.links, where, move) for where, move in found.items()),
        )


def partitions(cluster: Cluster, topic: str) -> tuple[PartitionDescription, ...]:
    (found,) = cluster.topics.describe(topic)
    return found.partitions


def _one(cluster: Cluster, topic: str, number: int) -> PartitionDescription:
    for one in partitions(cluster, topic):
        if one.partition == number:
            return one
    raise NoSuchTopic(f"{topic}-{number}", ())


def _ongoing(cluster: Cluster, wanted: Iterable[TopicPartition] | None) -> dict[TopicPartition, Reassignment]:
    try:
        return cluster.ask(lambda client: ongoing(client, wanted, patience_s=CONTROLLER_PATIENCE_S))
    except Refused as error:
        if isinstance(error, NoSuchTopic):
            return {}
        raise


def shape(links: Links, topic: str, one: PartitionDescription) -> Shape:
    here = ("topics", topic, "partitions", one.partition)
    found = links.resource(
        "KafkaPartition", here, f"topic={topic}/partition={one.partition}", topic_name=topic,
        partition_id=one.partition, replicas=links.related(*here, "replicas"),
        reassignment=links.related(*here, "reassignment"),
    )  # fmt: skip
    if one.leader != NO_LEADER:
        found["leader"] = links.related(*here, "replicas", one.leader)
    return found


def replica_shape(links: Links, topic: str, one: PartitionDescription, broker: int) -> Shape:
    return links.resource(
        "KafkaReplica", ("topics", topic, "partitions", one.partition, "replicas", broker),
        f"topic={topic}/partition={one.partition}/replica={broker}", topic_name=topic, partition_id=one.partition,
        broker_id=broker, is_leader=broker == one.leader, is_in_sync=broker in one.isr,
        broker=links.related("brokers", broker),
    )  # fmt: skip


def _reassignment(links: Links, where: TopicPartition, move: Reassignment) -> Shape:
    topic, number = where
    here = ("topics", topic, "partitions", number)
    return links.resource(
        "KafkaReassignment", (*here, "reassignment"), f"topic={topic}/partition={number}/reassignment",
        topic_name=topic, partition_id=number, adding_replicas=move.adding, removing_replicas=move.removing,
        replicas=links.related(*here, "replicas"),
    )  # fmt: skip
