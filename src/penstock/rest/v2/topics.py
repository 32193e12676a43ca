"""GET /topics, /topics/{topic}, its partitions and their offsets; GET /brokers."""

from __future__ import annotations

from typing import Any

from penstock.admin import Cluster, ConfigResource
from penstock.admin.offsets import spans
from penstock.admin.topics import NO_LEADER, PartitionDescription
from penstock.client.errors import NoSuchTopic
from penstock.model.ids import TopicPartition
from penstock.rest import errors
from penstock.rest.access import Accesses
from penstock.rest.content import ADMIN
from penstock.web.call import Call
from penstock.web.routes import Routes


class TopicsResource:
    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses

    def add_to(self, routes: Routes) -> None:
        for pattern, handler, summary in (
            ("/", self.root, "Nothing; it shows that the proxy is there."),
            ("/topics", self.every, "The names of the topics."),
            ("/topics/{topic}", self.topic, "A topic with its configs and partitions."),
            ("/topics/{topic}/partitions", self.partitions, "The partitions of a topic."),
            ("/topics/{topic}/partitions/{partition}", self.partition, "A partition."),
            (
                "/topics/{topic}/partitions/{partition}/offsets",
                self.offsets,
                "Where a partition begins and ends.",
            ),
            ("/brokers", self.brokers, "The ids of the brokers."),
        ):
            routes.add("GET", pattern, handler, summary, content=ADMIN)

    async def root(self, call: Call) -> object:
        return {}

    async def every(self, call: Call) -> object:
        access = await self._accesses.of(call)
        return await access.ask(lambda cluster: [one.name for one in cluster.topics.list(internal=True)])

    async def topic(self, call: Call) -> object:
        name = call["topic"]
        access = await self._accesses.of(call)

        def ask(cluster: Cluster) -> dict[str, Any]:
            partitions = described(cluster, name)
            configs = cluster.configs.describe(ConfigResource.topic(name))
            return {
                "name": name,
                "configs": {one.name: one.value for one in configs},
                "partitions": [shape(one) for one in partitions],
            }

        return await access.ask(ask)

    async def partitions(self, call: Call) -> object:
        name = call["topic"]
        access = await self._accesses.of(call)
        return await access.ask(lambda cluster: [shape(one) for one in described(cluster, name)])

    async def partition(self, call: Call) -> object:
        name, number = call["topic"], call.path_number("partition")
        access = await self._accesses.of(call)
        return await access.ask(lambda cluster: shape(_one(cluster, name, number)))

    async def offsets(self, call: Call) -> object:
        name, number = call["topic"], call.path_number("partition")
        access = await self._accesses.of(call)

        def ask(cluster: Cluster) -> dict[str, int]:
            if _one(cluster, name, number).leader == NO_LEADER:
                raise errors.leader_not_available()
            partition = TopicPartition(name, number)
            span = cluster.ask(lambda client: spans(client, [partition]))[partition]
            return {"beginning_offset": span.start_offset, "end_offset": span.end_offset}

        return await access.ask(ask)

    async def brokers(self, call: Call) -> object:
        access = await self._accesses.of(call)
        return {"brokers": await access.ask(lambda cluster: [one.id for one in cluster.brokers.list()])}


def described(cluster: Cluster, topic: str) -> tuple[PartitionDescription, ...]:
    try:
        (found,) = cluster.topics.describe(topic)
    except NoSuchTopic:
        raise errors.topic_not_found() from None
    return found.partitions


def _one(cluster: Cluster, topic: str, number: int) -> PartitionDescription:
    for one in described(cluster, topic):
        if one.partition == number:
            return one
    raise errors.partition_not_found()


def shape(one: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "leader": one.leader,
        "replicas": [
            {"broker": broker, "leader": broker == one.leader, "in_sync": broker in one.isr}
            for broker in one.replicas
        ],
    }
