"""Connections over real sockets, with a receiver that echoes."""

import asyncio
import itertools
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.net import admission as admission_module
from penstock.net import buffers as buffers_module
from penstock.net import connection as connections
from penstock.net import listener as listeners
from penstock.net.admission import Admission
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection, Deferred
from penstock.net.listener import Listener, ListenLimits, bind
from penstock.security.quotas import Window

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


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@asynccontextmanager
async def clients_of(listener: Listener, count: int) -> AsyncIterator[list[socket.socket]]:
    clients = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(count)]
    try:
        await until(lambda: len(listener.connections) >= count)
        yield clients
    finally:
        for client in clients:
            client.close()


def test_a_frame_holds_little_more_than_has_come_of_it_when_room_is_short() -> None:
    async def scenario() -> None:
        buffers = ReceiveBuffers(12 << 20)
        loop = asyncio.get_running_loop()
        listener = Listener("PLAINTEXT", bind("127.0.0.1", 0), loop, echo, buffers, lambda: LIMITS)
        listener.start()
        count, sent = 30, 70_000
        try:
            async with asyncio.timeout(60), clients_of(listener, count) as clients:
                for client in clients:
                    client.sendall(struct.pack(">i", 524_288) + bytes(sent))
                await until(lambda: all(each._have == sent + 4 for each in listener.connections))
                assert buffers.partial_bytes < buffers.partial_bytes_limit // 4 + (1 << 20) + count * 2 * sent
                reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
                writer.write(framed(bytes(800_000)))
                assert len(await read_frame(reader)) == 800_000
                writer.close()
        finally:
            listener.stop_accepting()
            listener.close()
        assert buffers.partial_bytes == 0

    asyncio.run(scenario())


def test_a_frame_that_stays_unfinished_makes_room_for_one_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers_module, "STALE_SECONDS", 0.0)

    async def scenario() -> None:
        async with (
            serving(echo, partial_limit=200_000) as (listener, reader, writer),
            clients_of(listener, 5) as clients,
        ):
            for client in clients:
                client.sendall(struct.pack(">i", 90_000) + bytes(20_000))
            await until(lambda: len(listener.connections) < 6)  # the last to come has taken a place
            frame = framed(bytes(60_000))
            writer.write(frame[:40_000])
            await until(lambda: any(each._have == 40_000 for each in listener.connections))
            writer.write(frame[40_000:])
            assert len(await read_frame(reader)) == 60_000

    asyncio.run(scenario())


def test_strangers_take_no_room_from_those_who_are_in() -> None:
    """And among them the oldest loses, so that a login that comes in pieces finds room."""

    async def scenario() -> None:
        loop, buffers = asyncio.get_running_loop(), ReceiveBuffers(8 << 20, 128 << 10)
        asks = LIMITS._replace(login_seconds=60)
        outside, inside = (
            Listener(name, bind("127.0.0.1", 0), loop, echo, buffers, lambda each=each: each)  # type: ignore[misc]
            for name, each in (("OUTSIDE", asks), ("INSIDE", LIMITS))
        )
        outside.start()
        inside.start()
        count = 60
        try:
            async with asyncio.timeout(60), clients_of(outside, count) as clients:
                for client in clients:
                    client.sendall(struct.pack(">i", 524_288) + bytes(20_000))
                await until(lambda: len(outside.connections) <= 4)
                assert 0 < buffers.stranger_bytes <= 128 << 10
                assert buffers.partial_bytes == 0
                login, sent = await asyncio.open_connection("127.0.0.1", outside.port)
                for part in (framed(bytes(20_000))[:15_000], framed(bytes(20_000))[15_000:]):
                    sent.write(part)
                    await sent.drain()
                    await asyncio.sleep(0)
                assert len(await read_frame(login)) == 20_000
                reader, writer = await asyncio.open_connection("127.0.0.1", inside.port)
                writer.write(framed(bytes(1_500_000)))
                assert len(await read_frame(reader)) == 1_500_000
                sent.close()
                writer.close()
        finally:
            for listener in (outside, inside):
                listener.stop_accepting()
                listener.close()
        assert buffers.stranger_bytes == buffers.partial_bytes == 0

    asyncio.run(scenario())


def test_who_does_not_log_in_is_closed_in_time_however_busy() -> None:
    def receive(connection: Connection, frame: memoryview) -> Any:
        if bytes(frame) == b"the password":
            connection.receive_by(echo, max_frame_bytes=1000)
        return echo(connection, frame)

    async def scenario() -> None:
        limits = LIMITS._replace(login_seconds=0.3, max_idle_seconds=-1)
        async with serving(receive, limits) as (listener, reader, writer):
            writer.write(framed(b"the password"))
            assert await read_frame(reader) == b"the password"
            connection = next(iter(listener.connections))
            stranger, dripping = await asyncio.open_connection("127.0.0.1", listener.port)
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    dripping.write(framed(b"not yet, not yet"))
                    await read_frame(stranger)
            assert not connection.is_closed
            writer.write(framed(b"still here"))
            assert await read_frame(reader) == b"still here"
            dripping.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("bound", ["max_connections", "broker_max_connections"])
def test_connections_beyond_the_limit_wait_until_others_end(bound: str) -> None:
    async def scenario() -> None:
        async with serving(echo, LIMITS._replace(**{bound: 1})) as (listener, reader, writer):
            writer.write(framed(b"first one"))
            assert await read_frame(reader) == b"first one"
            second, other = await asyncio.open_connection("127.0.0.1", listener.port)
            other.write(framed(b"second one"))
            for _ in range(20):
                writer.write(framed(b"once more"))
                assert await read_frame(reader) == b"once more"
            assert len(listener.connections) == 1
            writer.close()
            assert await read_frame(second) == b"second one"
            other.close()

    asyncio.run(scenario())


def test_who_has_not_logged_in_makes_room_for_who_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(connection: Connection, frame: memoryview) -> Any:
        connection.receive_by(echo, max_frame_bytes=1000)
        return echo(connection, frame)

    async def scenario() -> None:
        limits = LIMITS._replace(login_seconds=60, max_connections=3)
        async with serving(receive, limits) as (listener, reader, writer):
            writer.write(framed(b"the password"))
            assert await read_frame(reader) == b"the password"
            async with clients_of(listener, 2):
                await until(lambda: len(listener.connections) == 3)
                second, other = await asyncio.open_connection("127.0.0.1", listener.port)
                other.write(framed(b"the password"))
                for _ in range(20):
                    writer.write(framed(b"once more"))
                    assert await read_frame(reader) == b"once more"
                assert len(listener.connections) == 3, "they are given a moment"
                monkeypatch.setattr(admission_module, "FRESH_SECONDS", 0.0)
                assert await read_frame(second) == b"the password"
                writer.write(framed(b"still here"))
                assert await read_frame(reader) == b"still here"
                other.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("limits", [
    LIMITS._replace(max_connections_per_ip=1),
    LIMITS._replace(max_connections_per_ip=5, overrides_per_ip={"127.0.0.1": 1}),
])  # fmt: skip
def test_connections_beyond_the_limit_of_their_address_are_closed(limits: ListenLimits) -> None:
    async def scenario() -> None:
        async with serving(echo, limits) as (listener, reader, writer):
            writer.write(framed(b"first one"))
            assert await read_frame(reader) == b"first one"
            second, other = await asyncio.open_connection("127.0.0.1", listener.port)
            assert await second.read() == b""
            other.close()

    asyncio.run(scenario())


def test_an_address_that_comes_too_often_is_served_later() -> None:
    async def scenario() -> None:
        admission = Admission(Window(samples=1, sample_ms=50), rate_of_address=lambda host: 20.0)
        listener = Listener(
            "PLAINTEXT", bind("127.0.0.1", 0), asyncio.get_running_loop(), echo, ReceiveBuffers(64 << 20),
            lambda: LIMITS, admission=admission,
        )  # fmt: skip
        listener.start()
        try:
            async with asyncio.timeout(60):
                opened = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(5)]
                while not listener._late:
                    await asyncio.sleep(0)
                for reader, writer in opened:
                    writer.write(framed(b"whoever it is"))
                    assert await read_frame(reader) == b"whoever it is"
                    writer.close()
        finally:
            listener.stop_accepting()
            listener.close()

    asyncio.run(scenario())


def test_connections_that_wait_count_among_those_of_their_address() -> None:
    async def scenario() -> None:
        admission = Admission(Window(samples=1, sample_ms=3_600_000), rate_of_address=lambda host: 0.001)
        limits = LIMITS._replace(max_connections_per_ip=3)
        listener = Listener(
            "PLAINTEXT", bind("127.0.0.1", 0), asyncio.get_running_loop(), echo, ReceiveBuffers(64 << 20),
            lambda: limits, admission=admission,
        )  # fmt: skip
        listener.start()
        try:
            async with asyncio.timeout(60):
                opened = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(5)]
                for reader, _ in opened[3:]:
                    assert await reader.read() == b""
                assert listener.connection_count == 3
                for _, writer in opened:
                    writer.transport.abort()
                    with suppress(OSError):
                        await writer.wait_closed()
        finally:
            listener.stop_accepting()
            listener.close()
        assert not admission.by_address

    asyncio.run(scenario())


@pytest.mark.parametrize("bound", ["creation_rate", "broker_creation_rate"])
def test_connections_that_come_too_fast_are_accepted_later(bound: str) -> None:
    async def scenario() -> None:
        admission = Admission(Window(samples=1, sample_ms=20))
        limits = LIMITS._replace(**{bound: 50})
        listener = Listener(
            "PLAINTEXT", bind("127.0.0.1", 0), asyncio.get_running_loop(), echo, ReceiveBuffers(64 << 20),
            lambda: limits, admission=admission,
        )  # fmt: skip
        pauses: list[float] = []
        pause = listener._pause_accepting
        listener._pause_accepting = lambda seconds: (pauses.append(seconds), pause(seconds))  # type: ignore[method-assign,assignment,func-returns-value]
        listener.start()
        try:
            async with asyncio.timeout(60):
                opened = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(6)]
                for reader, writer in opened:
                    writer.write(framed(b"whoever it is"))
                    assert await read_frame(reader) == b"whoever it is"
                    writer.close()
            assert pauses
        finally:
            listener.stop_accepting()
            listener.close()

    asyncio.run(scenario())


def test_another_broker_takes_the_place_of_the_client_that_is_idle_longest() -> None:
    async def scenario() -> None:
        admission = Admission()
        loop, buffers = asyncio.get_running_loop(), ReceiveBuffers(64 << 20)
        limits = LIMITS._replace(broker_max_connections=2)
        clients, brokers = (
            Listener(name, bind("127.0.0.1", 0), loop, echo, buffers,
                     lambda each=each: each, admission=admission)  # type: ignore[misc]
            for name, each in (("CLIENTS", limits), ("BROKERS", limits._replace(is_protected=True)))
        )  # fmt: skip
        clients.start()
        brokers.start()
        try:
            async with asyncio.timeout(60):
                opened = []
                for body in (b"the older", b"the newer"):
                    opened.append(await asyncio.open_connection("127.0.0.1", clients.port))
                    opened[-1][1].write(framed(body))
                    assert await read_frame(opened[-1][0]) == body
                reader, writer = await asyncio.open_connection("127.0.0.1", brokers.port)
                writer.write(framed(b"a broker"))
                assert await read_frame(reader) == b"a broker"
                assert await opened[0][0].read() == b""
                opened[1][1].write(framed(b"the newer"))
                assert await read_frame(opened[1][0]) == b"the newer"
                for _, each in (*opened, (reader, writer)):
                    each.close()
        finally:
            for listener in (clients, brokers):
                listener.stop_accepting()
                listener.close()

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
                limits[0] = LIMITS._replace(max_connections_per_ip=1)
                second, other = await asyncio.open_connection("127.0.0.1", listener.port)
                assert await second.read() == b""
                other.close()
                writer.close()
                await writer.wait_closed()
        finally:
            listener.stop_accepting()
            listener.close()

    asyncio.run(scenario())


async def end_of_mute(connection: Connection) -> None:
    """As when the time is over, which the test does not wait for."""
    assert connection.is_muted
    connection._muted.cancel()  # type: ignore[union-attr]
    connection._unmute()


@pytest.mark.parametrize("rest", [b"", framed(b"the third")[:6]], ids=["whole frames", "and half a frame"])
def test_a_muted_client_is_answered_and_then_not_read(rest: bytes) -> None:
    """Not even what came together with the request for which it is muted."""
    handled = []

    def receive(connection: Connection, frame: memoryview) -> Any:
        handled.append(bytes(frame))
        if bytes(frame) == b"the first":
            connection.mute(3600)
            connection.mute(1)  # the longest counts
        return echo(connection, frame)

    async def scenario() -> None:
        async with serving(receive) as (listener, reader, writer):
            writer.write(framed(b"the first") + framed(b"the second") + rest)
            assert await read_frame(reader) == b"the first"
            (connection,) = listener.connections
            other_reader, other = await asyncio.open_connection("127.0.0.1", listener.port)
            for _ in range(20):  # the loop has had time for everybody
                other.write(framed(b"neighbour"))
                assert await read_frame(other_reader) == b"neighbour"
            assert handled.count(b"the second") == 0
            await end_of_mute(connection)
            assert await read_frame(reader) == b"the second"
            writer.write(framed(b"the third")[len(rest) :])
            assert await read_frame(reader) == b"the third"
            other.close()

    asyncio.run(scenario())


def test_a_muted_client_is_read_again_by_itself() -> None:
    until = 0.0

    def receive(connection: Connection, frame: memoryview) -> Any:
        nonlocal until
        now = asyncio.get_running_loop().time()
        assert now >= until
        until = now + 0.05
        connection.mute(0.05)
        return echo(connection, frame)

    async def scenario() -> None:
        async with serving(receive) as (_, reader, writer):
            for body in (b"the first", b"the second", os.urandom(300_000), b"the last"):
                writer.write(framed(body))
            for body in (b"the first", b"the second"):
                assert await read_frame(reader) == body
            assert len(await read_frame(reader)) == 300_000
            assert await read_frame(reader) == b"the last"

    asyncio.run(scenario())


def test_a_connection_that_is_held_and_muted_waits_for_both() -> None:
    async def scenario() -> None:
        held: list[Connection] = []

        def receive(connection: Connection, frame: memoryview) -> Any:
            if bytes(frame) == b"hold on-":
                connection.hold(frame)
                connection.mute(3600)
                held.append(connection)
            return echo(connection, frame)

        async with serving(receive) as (_, reader, writer):
            writer.write(framed(b"hold on-") + framed(b"the next"))
            assert await read_frame(reader) == b"hold on-"
            await end_of_mute(held[0])
            held[0].mute(3600)
            held[0].release()
            await asyncio.sleep(0)
            await end_of_mute(held[0])
            assert await read_frame(reader) == b"the next"

    asyncio.run(scenario())


def test_a_muted_connection_can_be_closed_and_does_not_idle() -> None:
    def receive(connection: Connection, frame: memoryview) -> Any:
        connection.mute(3600)
        return echo(connection, frame)

    async def scenario() -> None:
        limits = LIMITS._replace(max_idle_seconds=0.05)
        async with serving(receive, limits) as (listener, reader, writer):
            writer.write(framed(b"muted---"))
            assert await read_frame(reader) == b"muted---"
            (connection,) = listener.connections
            _, idle = await asyncio.open_connection("127.0.0.1", listener.port)
            while len(listener.connections) < 2:
                await asyncio.sleep(0.01)
            while len(listener.connections) > 1:  # until the other is closed, which is idle
                await asyncio.sleep(0.01)
            assert connection in listener.connections
            connection.close()
            assert await reader.read() == b""
            idle.close()

    asyncio.run(scenario())


def test_a_connection_that_is_muted_for_days_does_not_outlast_its_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While it is muted nobody notices that the client has gone. Changes of topics may cost a client any time."""
    monkeypatch.setattr(listeners, "MUTED_IDLE_SECONDS", 0.2)

    def receive(connection: Connection, frame: memoryview) -> Any:
        connection.mute(2**31 / 1000)
        return echo(connection, frame)

    async def scenario() -> None:
        limits = LIMITS._replace(max_idle_seconds=0.05)
        async with serving(receive, limits) as (listener, reader, writer):
            writer.write(framed(b"muted---"))
            assert await read_frame(reader) == b"muted---"
            writer.close()
            while listener.connections:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
