"""/brokers, and the replicas that a broker has."""

from __future__ import annotations

from penstock.admin import Cluster
from penstock.admin.facets.brokers import Broker
from penstock.rest.v3.partitions import replica_shape
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views, not_found
from penstock.web.call import Call
from penstock.web.routes import Routes


class BrokersResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        for pattern, handler, summary in (
            ("/brokers", self.every, "The brokers."),
            ("/brokers/{broker}", self.one, "A broker."),
            ("/brokers/{broker}/partition-replicas", self.replicas, "The replicas that a broker has."),
        ):
            routes.add("GET", CLUSTER + pattern, handler, summary, content=CONTENT)

    async def every(self, call: Call) -> object:
        view = await self._views.of(call)
        brokers = await view.access.ask(lambda cluster: cluster.brokers.list())
        return view.links.collection(
            "KafkaBrokerList", ("brokers",), (shape(view.links, one) for one in brokers)
        )

    async def one(self, call: Call) -> object:
        view = await self._views.of(call)
        number = call.path_number("broker")
        return shape(view.links, await view.access.ask(lambda cluster: _broker(cluster, number)))

    async def replicas(self, call: Call) -> object:
        view = await self._views.of(call)
        number = call.path_number("broker")

        def ask(cluster: Cluster) -> list[Shape]:
            _broker(cluster, number)
            names = [one.name for one in cluster.topics.list(internal=True)]
            return [
                replica_shape(view.links, topic.name, one, number)
                for topic in (cluster.topics.describe(*names) if names else ())
                for one in topic.partitions
                if number in one.replicas
            ]

        found = await view.access.ask(ask)
        return view.links.collection("KafkaReplicaList", ("brokers", number, "partition-replicas"), found)


def _broker(cluster: Cluster, number: int) -> Broker:
    for one in cluster.brokers.list():
        if one.id == number:
            return one
    raise not_found()


def shape(links: Links, one: Broker) -> Shape:
    return links.resource(
        "KafkaBroker", ("brokers", one.id), f"broker={one.id}", broker_id=one.id, host=one.host, port=one.port,
        rack=one.rack, configs=links.related("brokers", one.id, "configs"),
        partition_replicas=links.related("brokers", one.id, "partition-replicas"),
    )  # fmt: skip
