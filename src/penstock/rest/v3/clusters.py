"""/clusters: the one that this proxy serves."""

from __future__ import annotations

from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views
from penstock.web.call import Call
from penstock.web.routes import Routes


class ClustersResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        routes.add("GET", "/v3/clusters", self.every, "The clusters: one.", content=CONTENT)
        routes.add("GET", CLUSTER, self.one, "The cluster.", content=CONTENT)

    async def every(self, call: Call) -> object:
        found = await self._cluster(call)
        address = found["metadata"]["self"].rpartition("/")[0]
        return {"kind": "KafkaClusterList", "metadata": {"self": address, "next": None}, "data": [found]}

    async def one(self, call: Call) -> object:
        return await self._cluster(call)

    async def _cluster(self, call: Call) -> Shape:
        view = await self._views.of(call)
        return shape(view.links, await view.access.ask(lambda cluster: cluster.brokers.describe().controller))


def shape(links: Links, controller: int | None) -> Shape:
    found = links.resource("KafkaCluster", (), "")
    if controller is not None:
        found["controller"] = links.related("brokers", controller)
    for name, path in (
        ("acls", ("acls",)),
        ("brokers", ("brokers",)),
        ("broker_configs", ("broker-configs",)),
        ("consumer_groups", ("consumer-groups",)),
        ("topics", ("topics",)),
        ("partition_reassignments", ("topics", "-", "partitions", "-", "reassignment")),
    ):
        found[name] = links.related(*path)
    return found
