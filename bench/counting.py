"""What counting and timing of requests costs a small produce request: `python -m bench.counting`.

One process, as in `bench.small_request`: turns of the loop in which 16 connections have one request each, with a dispatch that
counts and with one that does not, in turn, so that whatever else the machine does meets both. Once the fastest turns of each
stretch are compared, in which no request is timed, and once all of them; shown is the median of the differences. What is not in
the difference is shown by itself: the increment of the topic's requests, and the two looks at whether a reply is timed.
"""

import asyncio
import gc
import socket
import statistics
import tempfile
import time
import timeit
from pathlib import Path
from typing import Any

import uvloop

from bench.raw import produce_request, receive_frame, record_batch
from bench.runner import CACHE_DIRECTORY
from bench.small_request import CONNECTIONS, LIMITS, TOPIC, VALUE, open_broker
from penstock.broker.metrics.traffic import TopicTraffic
from penstock.broker.requests.call import Call
from penstock.broker.requests.dispatch import Dispatch, Reply
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection
from penstock.net.listener import Listener, bind
from penstock.wire.framing import read_header

STRETCHES, TURNS = 200, 60
WARM_UP_TURNS = 1500
MOST_PERCENT = 1.0


class Uncounted(Dispatch):
    """The same path without the count."""

    def receive(self, connection: Connection, frame: memoryview) -> Reply:
        try:
            header = read_header(frame)
        except ValueError as error:
            connection.close(str(error))
            return None
        if header.api.between_brokers and not self._node.is_clustered:
            connection.close("of a cluster")
            return None
        call = Call(connection, header)
        try:
            handler = self._handlers.get(header.api_key) or self.load(header.api_key)
            if handler.handle_frame is not None:
                return handler.handle_frame(self._node, call, frame, header.body_offset)
            return self._ordinary(handler, call, frame)
        except Exception:
            connection.close("an error in the broker")
        return None


class Clients:
    """Of one listener."""

    def __init__(self, dispatch: Dispatch, request: bytes) -> None:
        self._request = request
        self._listener = Listener(
            "PLAINTEXT", bind("127.0.0.1", 0), asyncio.get_running_loop(), dispatch.receive,
            ReceiveBuffers(1 << 20), lambda: LIMITS,
        )  # fmt: skip
        self._listener.start()
        self._sockets = [
            socket.create_connection(("127.0.0.1", self._listener.port)) for _ in range(CONNECTIONS)
        ]

    async def turn_us(self) -> float:
        """Of one request, when each connection has one in the same turn."""
        for client in self._sockets:
            client.sendall(self._request)
        began = time.perf_counter()
        for _ in range(3):
            await asyncio.sleep(0)
        spent = time.perf_counter() - began
        for client in self._sockets:
            receive_frame(client)
        return spent / CONNECTIONS * 1e6

    async def stretch_us(self) -> tuple[float, float]:
        """In the fastest turns, and in most."""
        turns = sorted([await self.turn_us() for _ in range(TURNS)])
        return statistics.fmean(turns[: TURNS // 4]), statistics.fmean(turns[: TURNS * 9 // 10])

    def close(self) -> None:
        for client in self._sockets:
            client.close()
        self._listener.stop_accepting()
        self._listener.close()


def elsewhere_us() -> float:
    """What a request pays outside of `receive`."""
    topic: Any = type("Topic", (), {"__slots__": ("traffic",)})()
    topic.traffic = TopicTraffic()
    reply: Any = type("Reply", (), {"__slots__": ("timing",)})()
    reply.timing = None

    def both() -> None:
        topic.traffic.produce_requests += 1
        timing = reply.timing
        if timing is not None:
            timing.sending()
        if timing is not None:
            timing.sent()

    def nothing() -> None:
        pass

    each = [min(timeit.repeat(step, number=10_000, repeat=50)) / 10_000 * 1e6 for step in (both, nothing)]
    return each[0] - each[1]


async def main() -> None:
    gc.disable()
    Path(CACHE_DIRECTORY).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE_DIRECTORY) as directory:
        broker = await open_broker(directory)
        await broker.node.topics.auto_create(TOPIC, allowed=True)
        request = produce_request(TOPIC, record_batch(VALUE, timestamp_ms=time.time_ns() // 1_000_000))
        counted, uncounted = Clients(broker.dispatch, request), Clients(Uncounted(broker.node), request)
        for clients in (counted, uncounted):
            for _ in range(WARM_UP_TURNS):
                await clients.turn_us()
        rows: list[list[tuple[float, float]]] = []
        for stretch in range(STRETCHES):
            order = (uncounted, counted) if stretch % 2 else (counted, uncounted)
            spent = {clients: await clients.stretch_us() for clients in order}
            rows.append([spent[uncounted], spent[counted]])
        beside = elsewhere_us()
        for which, name in enumerate(("the fastest turns", "all turns but a tenth")):
            without = statistics.median(before[which] for before, _ in rows)
            more = statistics.median(after[which] - before[which] for before, after in rows) + beside
            print(f"{name:24} {without:6.2f} µs a request, counting {more:6.3f} µs: {more / without:6.2%}")
        counted.close()
        uncounted.close()
        await broker.stop(lambda: None)


if __name__ == "__main__":
    uvloop.run(main())
