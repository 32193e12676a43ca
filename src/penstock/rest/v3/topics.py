"""/topics: listed, made, described, grown, deleted."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from penstock.admin import Cluster
from penstock.admin.topic_changes import NewTopic, would_create
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import NoSuchTopic
from penstock.client.patience import Patience
from penstock.model.acl import NOT_ASKED, Operation
from penstock.model.errors import ErrorCode
from penstock.model.internal_topics import is_internal
from penstock.rest import bodies
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_FIELDS: Final = frozenset(
    {
        "topic_name",
        "partitions_count",
        "replication_factor",
        "replicas_assignments",
        "configs",
        "validate_only",
    }
)
NEW_TOPIC_S: Final = 5.0
"""How long a topic that was just made is looked for."""
MAX_PARTITIONS: Final = 1_000_000


class _Topic(NamedTuple):
    name: str
    partitions: int
    replication_factor: int
    operations: int = NOT_ASKED


class TopicsResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        at, one = f"{CLUSTER}/topics", f"{CLUSTER}/topics/{{topic}}"
        operations = {"include_authorized_operations": "also what the caller may do"}
        routes.add("GET", at, self.every, "The topics.", query=operations, content=CONTENT)
        routes.add("POST", at, self.create, "Make a topic.", body="the topic", content=CONTENT)
        routes.add("GET", one, self.one, "A topic.", query=operations, content=CONTENT)
        routes.add(
            "PATCH", one, self.patch, "Give a topic more partitions.", body="their number", content=CONTENT
        )
        routes.add("DELETE", one, self.delete, "Delete a topic.", content=CONTENT)

    async def every(self, call: Call) -> object:
        view, operations = await self._views.of(call), call.flag("include_authorized_operations")
        found = await view.access.ask(lambda cluster: _topics(cluster, None, operations))
        return view.links.collection("KafkaTopicList", ("topics",), (shape(view.links, one) for one in found))

    async def one(self, call: Call) -> object:
        view, operations = await self._views.of(call), call.flag("include_authorized_operations")
        name = call["topic"]
        return shape(
            view.links, (await view.access.ask(lambda cluster: _topics(cluster, name, operations)))[0]
        )

    async def create(self, call: Call) -> object:
        view = await self._views.of(call)
        given = await bodies.json_object(call, _FIELDS)
        name = bodies.text(given, "topic_name")
        partitions = bodies.number(given, "partitions_count", None)
        factor = bodies.number(given, "replication_factor", None)
        assignment = _assignment(given)
        configs = {
            bodies.text(one, "name"): bodies.text(one, "value", None)
            for one in bodies.objects(bodies.items(given, "configs", []), {"name", "value"})
        }
        validate_only = bodies.flag(given, "validate_only", False)

        def ask(cluster: Cluster) -> _Topic:
            if validate_only:
                topic = NewTopic(name, partitions, factor, configs, assignment)
                tried = cluster.ask(lambda client: would_create(client, topic))
                return _Topic(name, tried.partitions or 0, tried.replication_factor or 0)
            cluster.topics.create(
                name, partitions=partitions, replication_factor=factor, configs=configs, assignment=assignment
            )
            wanted = _Topic(
                name,
                partitions or len(assignment) or 0,
                factor or max(map(len, assignment), default=0),
            )
            return _new_topic(cluster, wanted)

        found = shape(view.links, await view.access.ask(ask))
        view.access.topics.forget(name)
        location = {"Location": found["metadata"]["self"]}
        return Answer.json(found, status=200 if validate_only else 201, headers=location)

    async def patch(self, call: Call) -> object:
        view, name = await self._views.of(call), call["topic"]
        count = bodies.number(await bodies.json_object(call, {"partitions_count"}), "partitions_count")

        def ask(cluster: Cluster) -> _Topic:
            _topics(cluster, name, False)
            cluster.topics.add_partitions(name, count)
            return _topics(cluster, name, False)[0]._replace(partitions=count)

        found = await view.access.ask(ask)
        view.access.topics.forget(name)
        return shape(view.links, found)

    async def delete(self, call: Call) -> object:
        view, name = await self._views.of(call), call["topic"]
        await view.access.ask(lambda cluster: cluster.topics.delete(name))
        view.access.topics.forget(name)
        return Answer(status=204)


def _assignment(given: dict[str, Any]) -> list[list[int]]:
    """The brokers of partitions 0, 1 and so on."""
    found = given.get("replicas_assignments")
    if not found:
        return []
    if not isinstance(found, dict):
        raise bodies.not_of_type(found, "object")
    rows: dict[int, list[int]] = {}
    for partition, brokers in found.items():
        number = bodies.number({"partition": partition}, "partition")
        if not isinstance(brokers, list):
            raise bodies.not_of_type(brokers, "array")
        rows[number] = [bodies.number({"broker": one}, "broker") for one in brokers]
    if sorted(rows) != list(range(len(rows))):
        raise HttpError(
            400, "replicas_assignments: partitions must be numbered from 0 without gaps", error_code=40002
        )
    return [rows[number] for number in range(len(rows))]


def _topics(cluster: Cluster, name: str | None, operations: bool) -> list[_Topic]:
    """One, or all by name. NoSuchTopic."""
    request = MetadataRequest(
        topics=None if name is None else [MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )

    def ask(client: ClusterClient) -> list[_Topic]:
        found = []
        for topic in client.ask(request, MetadataResponse).topics:
            if name is not None and topic.error_code:
                if topic.error_code in (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                ):
                    raise NoSuchTopic(name, ())
                raise refused(topic.error_code)
            factor = max((len(one.replica_nodes) for one in topic.partitions), default=0)
            found.append(
                _Topic(topic.name or "", len(topic.partitions), factor, topic.topic_authorized_operations)
            )
        return sorted(found)

    return cluster.ask(ask)


def _new_topic(cluster: Cluster, wanted: _Topic) -> _Topic:
    """As the brokers have it; as it was asked for, where they do not tell in time."""
    patience = Patience(NEW_TOPIC_S)
    while True:
        try:
            return _topics(cluster, wanted.name, False)[0]
        except NoSuchTopic:
            if not patience.pause():
                return wanted


def shape(links: Links, topic: _Topic) -> Shape:
    here = ("topics", topic.name)
    found = links.resource(
        "KafkaTopic", here, f"topic={topic.name}", topic_name=topic.name, is_internal=is_internal(topic.name),
        replication_factor=topic.replication_factor, partitions_count=topic.partitions,
        partitions=links.related(*here, "partitions"), configs=links.related(*here, "configs"),
        partition_reassignments=links.related(*here, "partitions", "-", "reassignment"),
        authorized_operations=[],
    )  # fmt: skip
    if topic.operations != NOT_ASKED:
        found["authorized_operations"] = [
            one.name for one in Operation if one > Operation.ANY and topic.operations >> one & 1
        ]
    return found
