"""A whole broker without ZooKeeper on real files and sockets, in the test's own loop and so under the law."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from penstock.broker.serving import BrokerServer, Ports
from penstock.config.loading import load
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import MetadataTree
from penstock.model.endpoints import Endpoint
from penstock.net.buffers import ReceiveBuffers
from penstock.net.listener import Listener, ListenLimits, bind
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.stores.embedded import open_store
from penstock.wire.schema import Message
from tests.hostile.raw_client import frame_of, read_response

LIMITS = ListenLimits(16 << 20, 100, 100, 600, -1, -1)
PATIENCE_S = 60.0


class LoneBroker:
    def __init__(self, broker: BrokerServer, listener: Listener) -> None:
        self.broker = broker
        self.node = broker.node
        self.listener = listener
        self.port = listener.port

    async def client(self) -> "Client":
        return Client(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24))


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, request: Message, version: int) -> None:
        frame = frame_of(request, version)
        self._writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive(self, request: Message, version: int) -> Any:
        """IncompleteReadError when the broker has closed the connection."""
        async with asyncio.timeout(PATIENCE_S):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return read_response(request.API_KEY, version, await self._reader.readexactly(size))

    async def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return await self.receive(request, version)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()


@asynccontextmanager
async def lone_broker(directory: Path, **options: str) -> AsyncIterator[LoneBroker]:
    """Names of options have their dots as underscores."""

    async def store(_: object) -> MetadataTree:
        return open_store(str(directory))

    more = {name.replace("_", "."): value for name, value in options.items()}
    config, _ = load({"log.dirs": str(directory), "offsets.topic.num.partitions": "1", **more}, {})
    loop = asyncio.get_running_loop()
    broker = BrokerServer(config, Ports(loop, SystemClock(), OsDisk(), random.Random(1), store), {})
    await broker.open(lambda reason: None)
    buffers = ReceiveBuffers(64 << 20)
    listener = Listener(
        "PLAINTEXT", bind("127.0.0.1", 0), loop, broker.dispatch.receive, buffers, lambda: LIMITS
    )
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", listener.port, "PLAINTEXT")
    await broker.join(BrokerRegistration(config.node_id, {"PLAINTEXT": endpoint}, None))
    listener.start()
    try:
        yield LoneBroker(broker, listener)
    finally:
        await broker.hand_over()
        listener.stop_accepting()
        await broker.stop(listener.close)
