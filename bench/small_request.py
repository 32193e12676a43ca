"""What a small produce request costs the broker, step by step: `python -m bench.small_request`.

One process: a broker on real files, and 16 sockets to it. Each step is called many times in short runs, of which the fastest
counts, since it is the one that nothing else on the machine disturbed. A step's figure includes the steps that are indented
under it. What waking a client costs is not in it, because nobody waits: see docs/decisions/0010-cost-of-a-small-request.md.
"""

import asyncio
import gc
import random
import socket
import struct
import tempfile
import time
import timeit
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import uvloop

from bench.raw import produce_request, receive_frame, record_batch
from bench.runner import CACHE_DIRECTORY
from penstock.broker.partitions.partition import Partition
from penstock.broker.serving import BrokerServer, Ports
from penstock.config.loading import load
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import MetadataTree
from penstock.model.endpoints import Endpoint
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Receiver
from penstock.net.listener import Listener, ListenLimits, bind
from penstock.records.batch import ATTRIBUTES_AT
from penstock.records.batch import read_header as read_batch_header
from penstock.records.crc import crc32c
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.stores.embedded import open_store
from penstock.wire.framing import read_header, response_prefix
from penstock.wire.produce import ProduceResult, read_request, write_response

TOPIC = "small"
VALUE = bytes(range(100))
CONNECTIONS = 16
RUN, RUNS = 100, 500
LIMITS = ListenLimits(1 << 20, 100, 100, 600, -1, -1)


def show(name: str, seconds: float) -> None:
    print(f"{name:56} {seconds * 1e6:6.2f} µs")


def timed(name: str, step: Callable[[], Any], *, before: Callable[[], Any] = lambda: None) -> None:
    def both() -> None:
        before()
        step()

    spent = min(timeit.repeat(both, number=RUN, repeat=RUNS)) - min(
        timeit.repeat(before, number=RUN, repeat=RUNS)
    )
    show(name, spent / RUN)


async def turn_seconds(receiver: Receiver, request: bytes) -> float:
    """Of the loop's turns in which all connections have one request each, per request."""
    loop = asyncio.get_running_loop()
    listener = Listener(
        "PLAINTEXT", bind("127.0.0.1", 0), loop, receiver, ReceiveBuffers(1 << 20), lambda: LIMITS
    )
    listener.start()
    clients = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(CONNECTIONS)]
    while len(listener.connections) < CONNECTIONS:
        await asyncio.sleep(0.001)
    fastest = float("inf")
    for _ in range(RUNS):
        for client in clients:
            client.sendall(request)
        began = time.perf_counter()
        for _ in range(3):  # read; send what waits for the end of the turn
            await asyncio.sleep(0)
        fastest = min(fastest, time.perf_counter() - began)
        for client in clients:
            receive_frame(client)
    for client in clients:
        client.close()
    listener.stop_accepting()
    listener.close()
    return fastest / CONNECTIONS


async def open_broker(directory: str, options: dict[str, str] | None = None) -> BrokerServer:
    async def store(_: Any) -> MetadataTree:
        return open_store(directory)

    config, _ = load({"log.dirs": directory, **(options or {})}, {})
    ports = Ports(asyncio.get_running_loop(), SystemClock(), OsDisk(), random.Random(), store)
    broker = BrokerServer(config, ports, {})
    await broker.open(print)
    endpoint = Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT")
    await broker.join(BrokerRegistration(config.node_id, {"PLAINTEXT": endpoint}, None))
    return broker


def steps(broker: BrokerServer, partition: Partition, request: bytes) -> None:
    """From the outside in. The broker writes offset and epoch into the batch, so that it is made new before each append."""
    frame = memoryview(bytearray(request))[4:]
    batch_at = len(frame) - len(record_batch(VALUE, timestamp_ms=0))
    batch, fresh = frame[batch_at:], bytes(frame[batch_at : batch_at + 16])
    connection: Any = SimpleNamespace(is_closed=True)

    def renew() -> None:
        batch[:16] = fresh

    timed("dispatch.receive", lambda: broker.dispatch.receive(connection, frame), before=renew)
    header = read_header(frame)
    timed("  the request's header", lambda: read_header(frame))
    timed("  the produce request", lambda: read_request(frame, header.body_offset, header.api_version))
    timed("  partition.append", lambda: partition.append(batch, to_all=True), before=renew)
    log = partition.log
    batch_header = read_batch_header(batch)
    timed("    the batch's header", lambda: read_batch_header(batch))
    timed("    CRC-32C of the batch", lambda: crc32c(batch[ATTRIBUTES_AT:]))
    timed("    log.append", lambda: log.append(batch, batch_header, 0), before=renew)
    file = OsDisk().open(f"{log.directory}/other", create=True)
    timed("      write() to the file", lambda: file.append(batch))
    file.close()
    results: list[tuple[str | bytes, list[ProduceResult]]] = [(TOPIC, [(0, 0, 12345, -1, 0, None)])]
    timed("  the answer", lambda: write_response(results, header.api_version))
    timed("  its header", lambda: response_prefix(header, 40))


async def main() -> None:
    gc.disable()
    with tempfile.TemporaryDirectory(dir=CACHE_DIRECTORY) as directory:
        broker = await open_broker(directory)
        await broker.node.topics.auto_create(TOPIC, allowed=True)
        partition = broker.node.partitions.get(TOPIC, 0)
        request = produce_request(TOPIC, record_batch(VALUE, timestamp_ms=time.time_ns() // 1_000_000))
        answer = (struct.pack(">ii", 44, 7), bytes(40))
        whole = await turn_seconds(broker.dispatch.receive, request)
        show(f"a request, when {CONNECTIONS} connections have one each", whole)
        show("receiving and sending alone", await turn_seconds(lambda _, __: answer, request))
        steps(broker, partition, request)
        await broker.stop(lambda: None)


if __name__ == "__main__":
    uvloop.run(main())
