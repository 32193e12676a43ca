"""Replies of one turn leave together, soon, and not behind what takes long."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection
from penstock.net.listener import Listener, ListenLimits, bind
from penstock.net.outbox import MAX_TOGETHER, Outbox

LIMITS = ListenLimits(
    max_frame_bytes=4 << 20,
    max_connections=100,
    max_connections_per_ip=100,
    max_idle_seconds=600,
    send_buffer_bytes=-1,
    receive_buffer_bytes=-1,
)


class Recorder:
    def __init__(self, sent: list[str], name: str, *, fails: bool = False) -> None:
        self._sent = sent
        self._name = name
        self._fails = fails
        self.closed_because: str | None = None

    def send_replies(self) -> None:
        if self._fails:
            raise ValueError("a mistake")
        self._sent.append(self._name)

    def close(self, reason: str) -> None:
        self.closed_because = reason


def test_replies_of_a_turn_leave_at_its_end_in_the_order_of_their_requests() -> None:
    async def scenario() -> None:
        sent: list[str] = []
        outbox = Outbox(asyncio.get_running_loop())
        for name in ("a", "b", "c"):
            if not outbox.is_due:
                outbox.schedule()
            outbox.add(Recorder(sent, name))
        assert sent == []
        await asyncio.sleep(0)
        assert sent == ["a", "b", "c"]
        assert not outbox.is_due

    asyncio.run(scenario())


def test_many_replies_do_not_wait_for_the_end_of_the_turn() -> None:
    async def scenario() -> None:
        sent: list[str] = []
        outbox = Outbox(asyncio.get_running_loop())
        outbox.schedule()
        for number in range(MAX_TOGETHER + 1):
            outbox.add(Recorder(sent, str(number)))
        assert len(sent) == MAX_TOGETHER
        await asyncio.sleep(0)
        assert len(sent) == MAX_TOGETHER + 1

    asyncio.run(scenario())


def test_a_mistake_in_one_connection_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        sent: list[str] = []
        outbox = Outbox(asyncio.get_running_loop())
        outbox.schedule()
        failing = Recorder(sent, "b", fails=True)
        for sender in (Recorder(sent, "a"), failing, Recorder(sent, "c")):
            outbox.add(sender)
        await asyncio.sleep(0)
        assert sent == ["a", "c"]
        assert failing.closed_because is not None

    asyncio.run(scenario())
    assert "a mistake" in caplog.text


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1 << 16)
    except BlockingIOError:
        return b""


@contextmanager
def clients_of(listener: Listener, count: int) -> Iterator[list[socket.socket]]:
    clients = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(count)]
    for client in clients:
        client.setblocking(False)
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


async def served(receiver: Callable[[Connection, memoryview], Any]) -> Listener:
    loop = asyncio.get_running_loop()
    buffers = ReceiveBuffers(64 << 20)
    listener = Listener("PLAINTEXT", bind("127.0.0.1", 0), loop, receiver, buffers, lambda: LIMITS)
    listener.start()
    return listener


def test_a_large_request_does_not_hold_back_the_reply_to_a_small_one() -> None:
    async def scenario() -> None:
        seen: list[bytes] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            if len(frame) > 1000:
                seen.append(received(small))
            return (framed(b"answered"),)

        listener = await served(receive)
        with clients_of(listener, 2) as (small, large):
            while len(listener.connections) < 2:
                await asyncio.sleep(0.001)
            small.send(framed(b"a few bytes"))
            large.send(framed(bytes(30_000)))
            async with asyncio.timeout(20):
                while not seen:
                    await asyncio.sleep(0)
        assert seen == [framed(b"answered")]
        listener.stop_accepting()
        listener.close()

    asyncio.run(scenario())


def test_whoever_a_request_wakes_comes_after_its_reply() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        seen: list[bytes] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            loop.call_soon(lambda: seen.append(received(client)))
            return (framed(b"answered"),)

        listener = await served(receive)
        with clients_of(listener, 1) as (client,):
            client.send(framed(b"wake them up"))
            async with asyncio.timeout(20):
                while not seen:
                    await asyncio.sleep(0)
        assert seen == [framed(b"answered")]
        listener.stop_accepting()
        listener.close()

    asyncio.run(scenario())


def test_a_listener_that_closes_sends_the_replies_that_are_ready() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        handled: list[bytes] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            handled.append(bytes(frame))
            if len(handled) == 2:
                listener.close()  # the reply to the first one is waiting for the end of the turn
            return (framed(b"answered"),)

        listener = await served(receive)
        with clients_of(listener, 2) as clients:
            while len(listener.connections) < 2:
                await asyncio.sleep(0.001)
            for client in clients:
                client.send(framed(b"a request"))
            async with asyncio.timeout(20):
                while len(handled) < 2:
                    await asyncio.sleep(0)
                clients[0].setblocking(True)
                assert await loop.run_in_executor(None, clients[0].recv, 100) == framed(b"answered")
        listener.stop_accepting()

    asyncio.run(scenario())
