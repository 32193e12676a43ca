"""Connections over real sockets, with a receiver that echoes."""

import asyncio
import itertools
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.net import connection as connections
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection, Deferred
from penstock.net.listener import Listener, ListenLimits, bind

LIMITS = ListenLimits(
    max_frame_bytes=4 << 20,
    max_connections=100,
    max_connections_per_ip=100,
    max_idle_seconds=600,
    send_buffer_bytes=-1,
    receive_buffer_bytes=-1,
)


class FileSlice(NamedTuple):
    file: Any
    position: int
    size_bytes: int


class File:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._fd

    def read_at(self, position: int, size: int) -> bytes:
        return os.pread(self._fd, size, position)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(connection: Connection, frame: memoryview) -> Sequence[Any]:
    return (struct.pack(">i", len(frame)), bytes(frame))


@asynccontextmanager
async def serving(
    receiver: Callable[[Connection, memoryview], Any],
    limits: ListenLimits = LIMITS,
    partial_limit: int = 64 << 20,
) -> AsyncIterator[tuple[Listener, asyncio.StreamReader, asyncio.StreamWriter]]:
    buffers = ReceiveBuffers(partial_limit)
    listener = Listener(
        "PLAINTEXT", bind("127.0.0.1", 0), asyncio.get_running_loop(), receiver, buffers, lambda: limits
    )
    listener.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 26)
    try:
        async with asyncio.timeout(60):
            yield listener, reader, writer
    finally:
        writer.close()
        listener.stop_accepting()
        listener.close()
        assert buffers.partial_bytes == 0


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


@pytest.mark.parametrize("size", [8, 100, 16 * 1024, 300_000, 3_000_000])
def test_a_frame_of_any_size_arrives_whole(size: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, reader, writer):
            body = os.urandom(size)
            writer.write(framed(body) + framed(b"and after"))
            assert await read_frame(reader) == body
            assert await read_frame(reader) == b"and after"

    asyncio.run(scenario())


def test_a_reply_that_was_to_come_later_and_is_there_at_once_leaves_at_once() -> None:
    def receive(connection: Connection, frame: memoryview) -> Deferred:
        deferred = connection.defer()
        deferred.resolve(echo(connection, frame))
        return deferred

    async def scenario() -> None:
        async with serving(receive) as (_, reader, writer):
            for body in (b"the first", b"the second", os.urandom(300_000)):
                writer.write(framed(body))
                assert await read_frame(reader) == body

    asyncio.run(scenario())


def test_a_frame_sent_byte_by_byte_arrives_whole() -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, reader, writer):
            for byte in framed(b"slow but sure"):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)
            assert await read_frame(reader) == b"slow but sure"

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [-1, 0, 7, (4 << 20) + 1, 2**31 - 1, -(2**31)])
def test_an_impossible_size_closes_the_connection(size: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, reader, writer):
            writer.write(struct.pack(">i", size))
            assert await reader.read() == b""

    asyncio.run(scenario())


def test_replies_leave_in_the_order_of_their_requests() -> None:
    async def scenario() -> None:
        parked: list[Deferred] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            if bytes(frame) == b"later---":
                parked.append(connection.defer())
                return parked[-1]
            return echo(connection, frame)

        async with serving(receive) as (_, reader, writer):
            writer.write(framed(b"later---") + framed(b"at once!"))
            while not parked:
                await asyncio.sleep(0.001)
            parked[0].resolve((framed(b"finally."),))
            assert await read_frame(reader) == b"finally."
            assert await read_frame(reader) == b"at once!"

    asyncio.run(scenario())


def test_a_request_without_a_reply_holds_up_nothing() -> None:
    async def scenario() -> None:
        def receive(connection: Connection, frame: memoryview) -> Any:
            return None if bytes(frame) == b"silence." else echo(connection, frame)

        async with serving(receive) as (_, reader, writer):
            writer.write(framed(b"silence.") + framed(b"answer it"))
            assert await read_frame(reader) == b"answer it"

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1000, 20_000, 5_000_000])
def test_a_slice_of_a_file_is_sent_as_it_is(tmp_path: Path, size: int) -> None:
    content = os.urandom(size + 100)
    (tmp_path / "f").write_bytes(content)
    file = File(tmp_path / "f")

    async def scenario() -> None:
        def receive(connection: Connection, frame: memoryview) -> Any:
            return (struct.pack(">i", size + 3), b"abc", FileSlice(file, 50, size))

        async with serving(receive) as (_, reader, writer):
            for _ in range(3):  # more than the socket takes at once: it waits and goes on
                writer.write(framed(b"give me."))
            for _ in range(3):
                assert await read_frame(reader) == b"abc" + content[50 : 50 + size]

    asyncio.run(scenario())


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def scenario() -> None:
        handled = 0

        def receive(connection: Connection, frame: memoryview) -> Any:
            nonlocal handled
            handled += 1
            return (framed(bytes(1 << 20)),)

        async with serving(receive) as (listener, _, _writer):
            with socket.create_connection(("127.0.0.1", listener.port)) as mute:
                mute.setblocking(False)
                for _ in range(10_000):
                    try:
                        mute.send(framed(b"more and more"))
                    except BlockingIOError:
                        break
                    await asyncio.sleep(0)
                settled = handled
                await asyncio.sleep(0.05)
                assert handled == settled
                assert handled < 2000

    asyncio.run(scenario())


def test_unfinished_frames_together_have_a_bound() -> None:
    async def scenario() -> None:
        async with serving(echo, partial_limit=100_000) as (_, reader, writer):
            writer.write(struct.pack(">i", 3_000_000) + bytes(90_000))
            assert await reader.read() == b""

    asyncio.run(scenario())


def test_connections_beyond_the_limit_are_refused() -> None:
    async def scenario() -> None:
        async with serving(echo, LIMITS._replace(max_connections=1)) as (listener, reader, writer):
            writer.write(framed(b"first one"))
            assert await read_frame(reader) == b"first one"
            second, other = await asyncio.open_connection("127.0.0.1", listener.port)
            assert await second.read() == b""
            other.close()

    asyncio.run(scenario())


def test_ipv4_clients_of_a_dual_stack_socket_are_known_by_their_plain_address() -> None:
    async def scenario() -> None:
        hosts: list[str] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            hosts.extend((connection.peer_host, connection.local_host))
            return echo(connection, frame)

        listener = Listener(
            "PLAINTEXT",
            bind("", 0),
            asyncio.get_running_loop(),
            receive,
            ReceiveBuffers(1 << 20),
            lambda: LIMITS,
        )
        listener.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(framed(b"who am i"))
        await read_frame(reader)
        writer.close()
        listener.stop_accepting()
        listener.close()
        assert hosts == ["127.0.0.1", "127.0.0.1"]

    asyncio.run(scenario())


def test_many_requests_at_once_do_not_keep_other_clients_from_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(1)
    monkeypatch.setattr(connections, "monotonic", lambda: float(next(seconds)))  # each request is a long one

    async def scenario() -> None:
        handled: list[bytes] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            if not handled:
                other.sendall(framed(b"in between"))
            handled.append(bytes(frame))
            return echo(connection, frame)

        async with serving(receive) as (listener, reader, writer):
            with socket.create_connection(("127.0.0.1", listener.port)) as other:
                while len(listener.connections) < 2:
                    await asyncio.sleep(0.001)
                bodies = [b"number %03d" % number for number in range(100)]
                writer.write(b"".join(map(framed, bodies)) + framed(b"the last one")[:9])
                assert [await read_frame(reader) for _ in bodies] == bodies
                writer.write(framed(b"the last one")[9:])
                assert await read_frame(reader) == b"the last one"
                assert handled.index(b"in between") < 90

    asyncio.run(scenario())


def test_requests_beyond_the_unanswered_ones_wait_their_turn() -> None:
    async def scenario() -> None:
        parked: list[Deferred] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            parked.append(connection.defer())
            return parked[-1]

        async with serving(receive) as (_, reader, writer):
            count = 3 * connections.MAX_UNANSWERED
            writer.write(framed(b"a request") * count)
            for number in range(count):
                while len(parked) <= number:
                    await asyncio.sleep(0.001)
                assert len(parked) - number <= connections.MAX_UNANSWERED
                parked[number].resolve((framed(b"reply %03d" % number),))
                assert await read_frame(reader) == b"reply %03d" % number

    asyncio.run(scenario())


def test_large_requests_wait_when_those_that_are_unanswered_are_large_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_UNANSWERED_BYTES", 500_000)

    async def scenario() -> None:
        parked: list[Deferred] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            parked.append(connection.defer())
            return parked[-1]

        async with serving(receive) as (_, reader, writer):
            count = 8
            writer.write(framed(bytes(300_000)) * count)
            for number in range(count):
                while len(parked) <= min(number + 1, count - 1):
                    await asyncio.sleep(0.001)
                for _ in range(20):  # a third one would come by now
                    await asyncio.sleep(0.001)
                assert len(parked) - number <= 2
                parked[number].resolve((framed(b"reply %03d" % number),))
                assert await read_frame(reader) == b"reply %03d" % number

    asyncio.run(scenario())


def test_a_file_that_ends_too_early_closes_the_connection(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(10))
    file = File(tmp_path / "f")

    async def scenario() -> None:
        def receive(connection: Connection, frame: memoryview) -> Any:
            return (struct.pack(">i", 20), FileSlice(file, 0, 20))

        async with serving(receive) as (_, reader, writer):
            writer.write(framed(b"give me."))
            assert await reader.read() == b""

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [100, 300_000])
def test_nothing_is_handled_behind_a_held_frame_until_it_is_released(size: int) -> None:
    """Whether it came with others in one piece, or in pieces by itself."""

    async def scenario() -> None:
        held: list[tuple[Connection, memoryview, Deferred]] = []
        handled: list[bytes] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            handled.append(bytes(frame[:8]))
            if bytes(frame[:4]) != b"hold":
                return echo(connection, frame)
            kept = connection.hold(frame)
            assert kept is not None
            deferred = connection.defer()
            held.append((connection, kept, deferred))
            return deferred

        async with serving(receive) as (_, reader, writer):
            first, second = b"hold one" + bytes(size), b"hold two" + bytes(size)
            writer.write(framed(first) + framed(b"between.") + framed(second) + framed(b"the last"))
            for number, body in enumerate((first, second), 1):
                while len(held) < number:
                    await asyncio.sleep(0.001)
                writer.write(framed(b"and more"))
                await asyncio.sleep(0.01)
                assert handled[-1] == body[:8]
                connection, kept, deferred = held[-1]
                assert kept == body, "what came meanwhile did not overwrite it"
                connection.release()
                deferred.resolve((framed(body),))
            assert [(await read_frame(reader))[:8] for _ in range(6)] == [
                b"hold one", b"between.", b"hold two", b"the last", b"and more", b"and more"
            ]  # fmt: skip

    asyncio.run(scenario())


def test_a_frame_that_finds_no_room_to_be_held_ends_its_connection() -> None:
    async def scenario() -> None:
        def receive(connection: Connection, frame: memoryview) -> None:
            assert connection.hold(frame) is None

        async with serving(receive, partial_limit=1000) as (_, reader, writer):
            writer.write(framed(bytes(100)))
            assert await reader.read() == b""

    asyncio.run(scenario())


def test_a_connection_that_ends_while_a_frame_is_held_gives_its_memory_back() -> None:
    async def scenario() -> None:
        held: list[Connection] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            assert connection.hold(frame) is not None
            held.append(connection)
            return connection.defer()

        async with serving(receive) as (_, _, writer):
            writer.write(framed(bytes(300_000)))
            while not held:
                await asyncio.sleep(0.001)
            held[0].close()
            held[0].release()

    asyncio.run(scenario())


def test_a_limit_that_changes_holds_for_the_next_connection() -> None:
    async def scenario() -> None:
        limits = [LIMITS]
        listener = Listener(
            "PLAINTEXT",
            bind("127.0.0.1", 0),
            asyncio.get_running_loop(),
            echo,
            ReceiveBuffers(64 << 20),
            lambda: limits[0],
        )
        listener.start()
        try:
            async with asyncio.timeout(60):
                reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
                writer.write(framed(b"first one"))
                assert await read_frame(reader) == b"first one"
                limits[0] = LIMITS._replace(max_connections=1)
                second, other = await asyncio.open_connection("127.0.0.1", listener.port)
                assert await second.read() == b""
                other.close()
                writer.close()
                await writer.wait_closed()
        finally:
            listener.stop_accepting()
            listener.close()

    asyncio.run(scenario())
