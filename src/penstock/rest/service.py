"""The REST proxy as a service of the web frame: its resources, and what lives as long as it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from penstock.rest import errors
from penstock.rest.access import Accesses
from penstock.rest.addresses import Addresses
from penstock.rest.consumers.instances import LOOK_EVERY_S, Instances
from penstock.rest.consumers.peers import Peers
from penstock.rest.content import ADMIN
from penstock.rest.options import LoadedRest
from penstock.rest.v2.consumers import ConsumersResource
from penstock.rest.v2.produce import ProduceResource
from penstock.rest.v2.topics import TopicsResource
from penstock.rest.v3.acls import AclsResource
from penstock.rest.v3.batch import BatchResource
from penstock.rest.v3.brokers import BrokersResource
from penstock.rest.v3.clusters import ClustersResource
from penstock.rest.v3.configs import ConfigsResource
from penstock.rest.v3.groups import GroupsResource
from penstock.rest.v3.partitions import PartitionsResource
from penstock.rest.v3.records import RecordsResource
from penstock.rest.v3.shapes import Views
from penstock.rest.v3.topics import TopicsResource as V3TopicsResource
from penstock.web.routes import Routes
from penstock.web.service import Running, WebService

PROBE_EVERY_S: Final = 10.0
GC_THRESHOLDS: Final = (25_000, 20, 50)


class Proxy:
    """What the resources share. BadOption where the options cannot be used."""

    def __init__(self, loaded: LoadedRest) -> None:
        options = loaded.rest
        self.options = options
        self.accesses = Accesses(options)
        self.addresses = Addresses(
            advertised=options["advertised.listeners"], host_name=loaded.web["host.name"]
        )
        self.instances = Instances(
            limit=options["penstock.consumer.instance.limit"],
            idle_timeout_ms=options["consumer.instance.timeout.ms"],
            proxy_id=options["id"],
        )
        self.peers = Peers(options["penstock.rest.peers"], options["id"])
        self.problem: str | None = None

    def routes(self) -> Routes:
        routes = Routes()
        if self.options["api.v2.enable"]:
            TopicsResource(self.accesses).add_to(routes)
            ProduceResource(self.accesses).add_to(routes)
            ConsumersResource(self.accesses, self.instances, self.options, self.addresses, self.peers).add_to(
                routes
            )
        if self.options["api.v3.enable"]:
            views = Views(self.accesses, self.addresses)
            for resource in (
                ClustersResource, BrokersResource, ConfigsResource, V3TopicsResource, PartitionsResource,
                GroupsResource, AclsResource,
            ):  # fmt: skip
                resource(views).add_to(routes)
            RecordsResource(views, self.options).add_to(routes)
            BatchResource(views, self.options).add_to(routes)
        return routes

    @asynccontextmanager
    async def lived(self, running: Running) -> AsyncIterator[None]:
        self.addresses.listening(running.listeners)
        # What is there now stays: the garbage collector need not look at it again, nor as often at a large request's records.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            self.peers.close()
            await self.instances.close()
            await self.accesses.close()

    async def _watch(self) -> None:
        looks = 0
        while True:
            if looks % round(PROBE_EVERY_S / LOOK_EVERY_S) == 0:
                self.problem = await self.accesses.problem()
                self.accesses.tidy()
            looks += 1
            self.instances.expire()
            await asyncio.sleep(LOOK_EVERY_S)


def service(loaded: LoadedRest) -> WebService:
    proxy = Proxy(loaded)
    return WebService(
        name="rest",
        title="Penstock REST proxy",
        routes=proxy.routes(),
        content=ADMIN,
        lifecycle=proxy.lived,
        health=lambda: proxy.problem,
        refusal=errors.refusal,
    )
