"""What the service says about itself."""

from __future__ import annotations

from typing import Any

import penstock
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import Paths
from penstock.web.call import Answer, Call


def add_to(paths: Paths, registry: Registry) -> None:
    routes = paths.routes

    @routes.get("/", "An empty object: it is here.")
    async def root(call: Call) -> dict[str, Any]:
        return {}

    @routes.post("/", "The same.", body="any JSON")
    async def posted_root(call: Call) -> Answer:
        await call.body()
        return Answer.json({})

    @routes.get("/v1/metadata/id", "The clusters that it belongs to.")
    async def cluster_id(call: Call) -> dict[str, Any]:
        group = registry.options["schema.registry.group.id"]
        clusters = {"kafka-cluster": registry.cluster_id, "schema-registry-cluster": group}
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}

    @routes.get("/v1/metadata/version", "The version of this service.")
    async def version(call: Call) -> dict[str, str]:
        return {"version": penstock.__version__, "commitId": ""}

    @routes.get("/v1/metadata/deployment", "What is special about this deployment: nothing.")
    async def deployment(call: Call) -> dict[str, Any]:
        return {"attributes": []}
