"""Asking other brokers, over real sockets, with servers that answer as the test says; well and badly."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest
import uvloop

from penstock.net import peer_connection
from penstock.net.peers import Entered, Peers, PeerUnavailable, default_connect
from penstock.runtime.pools import Pools
from penstock.wire import codec
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse

PATIENCE_S = 60.0
SOON_S = 0.2
FETCH = 1

Run = Callable[[Coroutine[Any, Any, None]], None]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def with_patience(scenario: Coroutine[Any, Any, None]) -> None:
        request.param(asyncio.wait_for(scenario, PATIENCE_S))

    return with_patience


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(serve: Serve, **options: Any) -> AsyncIterator[tuple[Server, Peers]]:
    """A server that does with each connection what the test wants, and peers that know it as broker 1."""
    busy: set[asyncio.Task[Any]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        writers.append(writer)
        server.connections += 1
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(accepted, "127.0.0.1", 0, limit=1 << 26)
    server = Server(listening.sockets[0].getsockname()[1])
    peers = Peers(asyncio.get_running_loop(), "tests", **options)
    peers.set_address(1, "127.0.0.1", server.port)
    try:
        yield server, peers
    finally:
        peers.close()
        listening.close()
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()  # what still has bytes to send would otherwise outlive the loop
        await asyncio.sleep(0)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def correlation_of(frame: bytes) -> bytes:
    return frame[4:8]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers fetches (flexible, from client `tests`) with their own bodies."""
    while True:
        frame = await read_frame(reader)
        assert frame[8:15] == b"\x00\x05tests"
        writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def ask(peers: Peers, body: bytes, *, timeout_s: float = PATIENCE_S) -> bytes:
    return bytes(await peers.peer(1, "fetch").ask_raw(FETCH, 17, body, timeout_s=timeout_s))


def test_a_request_and_its_answer_are_messages(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        assert frame[:4] == struct.pack(">hh", 4, 7)
        assert codec.decode(LeaderAndIsrRequest, 7, frame, 16)[0].controller_epoch == 9
        answer = codec.encode(LeaderAndIsrResponse(error_code=11), 7)
        writer.write(framed(correlation_of(frame) + b"\x00" + answer))
        frame = await read_frame(reader)
        assert codec.decode(HeartbeatRequest, 3, frame, 15)[0].group_id == "g"
        answer = codec.encode(HeartbeatResponse(error_code=27), 3)
        writer.write(framed(correlation_of(frame) + answer))

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            flexible = await peers.ask(
                1,
                LeaderAndIsrRequest(controller_epoch=9),
                LeaderAndIsrResponse,
                version=7,
                timeout_s=PATIENCE_S,
            )
            assert flexible.error_code == 11
            classic = await peers.ask(
                1, HeartbeatRequest(group_id="g"), HeartbeatResponse, version=3, timeout_s=PATIENCE_S
            )
            assert classic.error_code == 27

    run(scenario())


def test_many_requests_are_on_their_way_at_once_and_each_gets_its_own_answer(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (server, peers):
            bodies = [b"%d" % number for number in range(200)]
            assert await asyncio.gather(*(ask(peers, body) for body in bodies)) == bodies
            assert server.connections == 1

    run(scenario())


@pytest.mark.parametrize("size", [0, 1, 60_000, 65_530, 65_536, 70_000, 5_000_000])
def test_an_answer_of_any_size_arrives_whole_and_so_does_the_next(run: Run, size: int) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, peers):
            body = os.urandom(size)
            found = await asyncio.gather(ask(peers, body), ask(peers, b"and after"), ask(peers, body))
            assert found == [body, b"and after", body]

    run(scenario())


def test_the_body_may_come_in_parts(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, peers):
            parts = (b"one ", bytearray(b"two "), memoryview(b"three"))
            answer = await peers.peer(1).ask_raw(FETCH, 17, parts, timeout_s=PATIENCE_S)
            assert bytes(answer) == b"one two three"

    run(scenario())


def test_a_large_answer_is_handed_on_in_the_buffer_that_received_it(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, peers):
            answer = await peers.peer(1).ask_raw(FETCH, 17, bytes(1 << 20), timeout_s=PATIENCE_S)
            assert isinstance(answer.obj, bytearray)
            assert len(answer.obj) == len(answer) + 5  # correlation id and tagged fields

    run(scenario())


def test_an_answer_sent_byte_by_byte_arrives_whole(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (b"slow but", b"sure"):
            frame = await read_frame(reader)
            for byte in framed(correlation_of(frame) + b"\x00" + answer):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.001)

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            assert [await ask(peers, b"x"), await ask(peers, b"x")] == [b"slow but", b"sure"]

    run(scenario())


def test_the_connection_is_made_at_the_first_question_and_again_after_it_was_lost(run: Run) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))

    async def scenario() -> None:
        async with serving(once) as (server, peers):
            assert server.connections == 0
            for number in range(5):
                while True:  # the end of the last connection may be noticed only by the next question
                    try:
                        assert await ask(peers, b"%d" % number) == b"%d" % number
                        break
                    except PeerUnavailable:
                        pass
            assert server.connections >= 5

    run(scenario())


def test_purposes_do_not_wait_for_one_another(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await read_frame(reader)
            if frame[16:] != b"long poll":
                writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            poll = asyncio.ensure_future(ask(peers, b"long poll"))
            control = peers.peer(1, "control")
            assert bytes(await control.ask_raw(FETCH, 17, b"now", timeout_s=PATIENCE_S)) == b"now"
            assert not poll.done()
            assert peers.peer(1, "control") is control
            poll.cancel()
            await asyncio.wait([poll])

    run(scenario())


def test_a_clients_request_is_relayed_with_its_own_correlation_id(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await read_frame(reader)
            assert frame[:4] == struct.pack(">hh", 19, 7)
            assert frame[8:] == b"the rest of it"
            answers.append(correlation_of(frame))
            writer.write(framed(correlation_of(frame) + b"answer" * size))

    answers: list[bytes] = []
    size = 1

    async def scenario() -> None:
        nonlocal size
        async with serving(serve) as (_, peers):
            frame = struct.pack(">hhi", 19, 7, 77_777) + b"the rest of it"
            forward = peers.peer(1, "forward")
            for size in (1, 100_000):
                answer = await forward.relay(frame, PATIENCE_S)
                assert answer == struct.pack(">i", 77_777) + b"answer" * size
        assert len(set(answers)) == 2
        assert struct.pack(">i", 77_777) not in answers

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda id_: b"", "it closed the connection"),
        (lambda id_: struct.pack(">i", 1 << 20) + id_, "an answer of 1048576 bytes"),
        (lambda id_: struct.pack(">i", -1) + id_, "an answer of -1 bytes"),
        (lambda id_: framed(b"ab"), "an answer of 2 bytes"),
        (lambda id_: b"HTTP/1.1 400 Bad Request\r\n\r\n", "an answer of 1213486160 bytes"),
        (lambda id_: framed(b"\x7f\x00\x00\x00\x00"), "it answered another request than ours"),
        (lambda id_: framed(id_), "an answer that cannot be read: the answer ends in its header"),
        (lambda id_: framed(id_ + b"\x00\x07"), "an answer that cannot be read: LeaderAndIsrResponse"),
    ],
)
def test_an_answer_that_is_none_fails_in_one_line_and_ends_the_connection(
    run: Run, answer: Callable[[bytes], bytes], complaint: str
) -> None:
    good = codec.encode(LeaderAndIsrResponse(error_code=0), 7)
    is_bad = True

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        if not is_bad:
            writer.write(framed(correlation_of(frame) + b"\x00" + good))
        elif bad := answer(correlation_of(frame)):
            writer.write(bad)
        else:
            return
        await reader.read()
        ended.set()

    ended = asyncio.Event()

    async def scenario() -> None:
        nonlocal is_bad
        async with serving(serve, max_answer_bytes=1000) as (server, peers):
            request = LeaderAndIsrRequest()
            with pytest.raises(PeerUnavailable) as refused:
                await peers.ask(1, request, LeaderAndIsrResponse, version=7, timeout_s=PATIENCE_S)
            assert str(refused.value).startswith(f"{server.address}: {complaint}")
            assert "\n" not in str(refused.value)
            if answer(b"1234"):
                await ended.wait()
            is_bad = False
            await peers.ask(1, request, LeaderAndIsrResponse, version=7, timeout_s=PATIENCE_S)
            assert server.connections == 2

    run(scenario())


def test_an_answer_that_nobody_asked_for_ends_the_connection(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        writer.write(2 * framed(correlation_of(frame) + b"\x00" + frame[16:]))
        assert await reader.read() == b""
        ended.set()

    ended = asyncio.Event()

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            assert await ask(peers, b"once") == b"once"
            await ended.wait()

    run(scenario())


def test_a_late_answer_fails_and_is_never_taken_for_a_later_one(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await read_frame(reader)
        if server_is_slow.is_set():
            await reader.read()  # until the asker gives up
            server_is_slow.clear()
        writer.write(framed(correlation_of(first) + b"\x00" + first[16:]))

    server_is_slow = asyncio.Event()
    server_is_slow.set()

    async def scenario() -> None:
        async with serving(serve) as (server, peers):
            patient = asyncio.ensure_future(ask(peers, b"patient"))
            with pytest.raises(PeerUnavailable, match=f"^{server.address}: no answer to FETCH in time$"):
                await ask(peers, b"hasty", timeout_s=SOON_S)
            with pytest.raises(PeerUnavailable, match="no answer to FETCH in time"):
                await patient  # what came after it on the same connection could not be matched
            assert await ask(peers, b"again") == b"again"

    run(scenario())


def test_a_server_that_only_listens_and_never_reads_costs_no_more_than_the_deadline(run: Run) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            peers = Peers(asyncio.get_running_loop(), "tests")
            peers.set_address(1, *deaf.getsockname())
            with pytest.raises(PeerUnavailable, match="no answer to FETCH in time"):
                await ask(peers, bytes(20 << 20), timeout_s=SOON_S)
            peers.close()

    run(scenario())


def test_a_request_larger_than_the_sockets_buffers_is_sent_whole(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, peers):
            body = os.urandom(20 << 20)
            assert await ask(peers, body) == body

    run(scenario())


def test_what_a_broker_does_not_take_is_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_connection, "MAX_UNSENT_BYTES", 30 << 20)
    monkeypatch.setattr(peer_connection, "MAX_IN_FLIGHT", 3)

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        await forever.wait()

    forever = asyncio.Event()

    async def scenario() -> None:
        async with serving(deaf) as (server, peers):
            waiting = [asyncio.ensure_future(ask(peers, bytes(25 << 20)))]
            while peers.peer(1, "fetch")._connection is None:
                await asyncio.sleep(0.001)
            for _ in range(10):  # the turns in which the first request finds the connection
                await asyncio.sleep(0)
            with pytest.raises(PeerUnavailable, match="bytes of requests already wait to be sent"):
                await ask(peers, bytes(25 << 20))
            waiting += [asyncio.ensure_future(ask(peers, b"small")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(PeerUnavailable, match="3 requests already wait for their answers"):
                await ask(peers, b"one too many")
            peers.forget(1)
            for task in waiting:
                with pytest.raises(PeerUnavailable, match=f"^{server.address}: it is not there any more$"):
                    await task
            forever.set()

    run(scenario())


def test_a_connection_that_ends_before_it_is_used_fails_at_once(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (_, peers):
            await ask(peers, b"first")
            connection = peers.peer(1, "fetch")._connection
            assert connection is not None
            connection.close("gone")
            with pytest.raises(PeerUnavailable, match="lost at once"):
                connection.ask(lambda number: b"", (), body_bytes=0, what="FETCH", deadline=0.0)

    run(scenario())


def test_a_request_that_is_given_up_does_not_hold_up_the_next(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await read_frame(reader)
            arrived.set()
            if frame[16:] == b"long poll":
                await reader.read()
                given_up.set()
            else:
                writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))

    arrived, given_up = asyncio.Event(), asyncio.Event()

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            poll = asyncio.ensure_future(ask(peers, b"long poll"))
            await arrived.wait()
            poll.cancel()
            await asyncio.wait([poll])
            assert await ask(peers, b"next") == b"next"
            await given_up.wait()

    run(scenario())


def test_giving_up_one_of_several_requests_leaves_the_others_alone(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = [await read_frame(reader) for _ in range(3)]
        arrived.set()
        await released.wait()
        for frame in frames:
            writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))
        await reader.read()

    arrived, released = asyncio.Event(), asyncio.Event()

    async def scenario() -> None:
        async with serving(serve) as (server, peers):
            tasks = [asyncio.ensure_future(ask(peers, b"%d" % number)) for number in range(3)]
            await arrived.wait()
            tasks[1].cancel()
            await asyncio.wait([tasks[1]])
            released.set()
            assert await asyncio.gather(tasks[0], tasks[2]) == [b"0", b"2"]
            assert server.connections == 1

    run(scenario())


def test_a_broker_without_an_address_is_not_available(run: Run) -> None:
    async def scenario() -> None:
        peers = Peers(asyncio.get_running_loop(), "tests")
        with pytest.raises(PeerUnavailable, match=r"^broker 1: its address is not known$"):
            await ask(peers, b"x")

    run(scenario())


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", 0), ("host..of..nobody", 9092), ("x" * 100, 9092), ("127.0.0.1", 70_000), ("::1", 0)],
    ids=["no port", "no host", "no name", "no number", "IPv6"],
)
def test_an_address_where_nobody_is_fails_in_one_line(run: Run, host: str, port: int) -> None:
    async def scenario() -> None:
        peers = Peers(asyncio.get_running_loop(), "tests")
        peers.set_address(1, host, port)
        with pytest.raises(PeerUnavailable) as refused:
            await ask(peers, b"x")
        shown = f"[{host}]" if ":" in host else host
        assert str(refused.value).startswith(f"{shown}:{port}: ")
        assert "\n" not in str(refused.value)
        peers.close()

    run(scenario())


def test_a_broker_that_starts_later_is_reached(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo) as (server, peers):
            with socket.socket() as reserved:
                reserved.bind(("127.0.0.1", 0))  # a port on which nobody listens
                peers.set_address(1, *reserved.getsockname())
                with pytest.raises(PeerUnavailable, match="Connection refused"):
                    await ask(peers, b"x")
            peers.set_address(1, "127.0.0.1", server.port)
            assert await ask(peers, b"x") == b"x"

    run(scenario())


def test_between_failed_attempts_there_are_pauses_that_grow(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        attempts: list[float] = []

        async def refuse(host: str, port: int) -> Entered:
            attempts.append(loop.time())
            raise ConnectionRefusedError("no")

        peers = Peers(loop, "tests", refuse)
        peers.set_address(1, "elsewhere", 1)
        for _ in range(4):
            found = await asyncio.gather(*(ask(peers, b"x") for _ in range(5)), return_exceptions=True)
            assert [str(error) for error in found] == ["elsewhere:1: no"] * 5
        assert len(attempts) == 4  # those who ask at the same time share one
        assert attempts[-1] - attempts[0] >= 0.3  # 50, 100 and 200 ms, less what the loop's clock rounds away
        peers.close()

    run(scenario())


def test_a_connection_that_does_not_come_about_fails_at_the_deadline(run: Run) -> None:
    async def scenario() -> None:
        never = asyncio.Event()

        async def stall(host: str, port: int) -> Entered:
            await never.wait()
            raise AssertionError

        peers = Peers(asyncio.get_running_loop(), "tests", stall)
        peers.set_address(1, "elsewhere", 1)
        with pytest.raises(PeerUnavailable, match=r"^elsewhere:1: no connection in time$"):
            await ask(peers, b"x", timeout_s=SOON_S)
        waiting = asyncio.ensure_future(ask(peers, b"x"))
        await asyncio.sleep(0)
        peers.close()
        with pytest.raises(PeerUnavailable, match="this broker is stopping"):
            await waiting
        peers.set_address(1, "elsewhere", 1)
        with pytest.raises(PeerUnavailable, match="its address is not known"):
            await ask(peers, b"x")

    run(scenario())


def test_a_broker_that_moved_is_asked_where_it_is_now(run: Run) -> None:
    async def scenario() -> None:
        async with serving(silence) as (old, peers), serving(echo) as (new, _):
            lost = asyncio.ensure_future(ask(peers, b"x"))
            while not old.connections:
                await asyncio.sleep(0.001)
            peers.set_address(1, "127.0.0.1", old.port)  # the same: nothing happens
            await asyncio.sleep(0)
            assert not lost.done()
            peers.set_address(1, "127.0.0.1", new.port)
            with pytest.raises(PeerUnavailable, match=old.address):
                await lost
            assert await ask(peers, b"y") == b"y"

    run(scenario())


def test_the_answer_to_api_versions_has_no_tagged_fields_in_its_header(run: Run) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        answer = codec.encode(ApiVersionsResponse(throttle_time_ms=5), 3)
        writer.write(framed(correlation_of(frame) + answer))

    async def scenario() -> None:
        async with serving(serve) as (_, peers):
            answer = await peers.ask(
                1, ApiVersionsRequest(), ApiVersionsResponse, version=3, timeout_s=PATIENCE_S
            )
            assert answer.throttle_time_ms == 5

    run(scenario())


# --- logins that end


def ending_after(*lifetimes_s: float) -> Callable[[str, int], Awaitable[Entered]]:
    """Logins of the first connections are good for so long, and those of later ones for ever."""
    left = list(lifetimes_s)

    async def connect(host: str, port: int) -> Entered:
        entered = await default_connect(host, port, names=Pools(asyncio.get_running_loop()).names)
        return entered._replace(lifetime_s=left.pop(0) if left else inf)

    return connect


def test_a_connection_whose_login_ends_has_a_successor_before_and_loses_no_answer(run: Run) -> None:
    """And the other broker gets the requests in the order in which they were asked, though on two connections."""
    arrived: list[tuple[int, bytes]] = []
    released, ended = asyncio.Event(), asyncio.Event()

    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            number = server.connections
            try:
                while True:
                    frame = await read_frame(reader)
                    arrived.append((number, frame[16:]))
                    if frame[16:] == b"long":
                        await released.wait()
                    writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))
            finally:
                if number == 1:
                    ended.set()

        async with serving(serve, connect=ending_after(1.0)) as (server, peers):
            long = asyncio.ensure_future(ask(peers, b"long"))
            while server.connections < 2:  # the successor
                await asyncio.sleep(0.001)
            while peers.peer(1, "fetch")._successor is None:
                await asyncio.sleep(0.001)
            behind = [asyncio.ensure_future(ask(peers, b"%d" % number)) for number in range(3)]
            await asyncio.sleep(0)
            assert arrived == [(1, b"long")]
            released.set()
            assert [bytes(each) for each in await asyncio.gather(long, *behind)] == [
                b"long",
                b"0",
                b"1",
                b"2",
            ]
            assert arrived == [(1, b"long"), (2, b"0"), (2, b"1"), (2, b"2")]
            await ended.wait()

    run(scenario())


def test_nothing_is_asked_on_a_connection_whose_login_is_over(run: Run) -> None:
    """Its successor comes late."""
    may_enter = asyncio.Event()

    async def scenario() -> None:
        quickly = ending_after(0.5)

        async def connect(host: str, port: int) -> Entered:
            if server.connections:
                await may_enter.wait()
            return await quickly(host, port)

        async with serving(echo, connect=connect) as (server, peers):
            assert await ask(peers, b"first") == b"first"
            connection = peers.peer(1, "fetch")._connection
            assert connection is not None
            while asyncio.get_running_loop().time() < connection.lasts_until:
                await asyncio.sleep(0.01)
            late = asyncio.ensure_future(ask(peers, b"late"))
            await asyncio.sleep(0)
            assert not connection.is_busy
            may_enter.set()
            assert await late == b"late"
            assert connection.is_closed

    run(scenario())


def test_a_successor_that_cannot_be_made_is_tried_again_while_the_old_connection_is_good(run: Run) -> None:
    async def scenario() -> None:
        attempts = 0
        enter = ending_after(2.0)

        async def connect(host: str, port: int) -> Entered:
            nonlocal attempts
            attempts += 1
            if attempts in (2, 3):
                raise ConnectionRefusedError("no token at the moment")
            return await enter(host, port)

        async with serving(echo, connect=connect) as (server, peers):
            first = None
            while server.connections < 2:
                assert await ask(peers, b"x") == b"x"
                first = first or peers.peer(1, "fetch")._connection
                await asyncio.sleep(0.01)
            assert first is not None
            assert attempts == 4
            while not first.is_closed:
                await asyncio.sleep(0.001)
            assert await ask(peers, b"y") == b"y"

    run(scenario())


def test_a_connection_that_nobody_asks_anything_on_is_not_renewed(run: Run) -> None:
    async def scenario() -> None:
        async with serving(echo, connect=ending_after(0.3, 0.3)) as (server, peers):
            assert await ask(peers, b"x") == b"x"
            peer = peers.peer(1, "fetch")
            while server.connections < 2 or peer._connection is not None:  # the successor, and then none
                await asyncio.sleep(0.001)
            assert await ask(peers, b"y") == b"y"
            assert server.connections == 3

    run(scenario())


def test_a_successor_that_is_lost_at_once_leaves_the_old_connection_alone(run: Run) -> None:
    released = asyncio.Event()

    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if server.connections == 2:
                return
            while True:
                frame = await read_frame(reader)
                await released.wait()
                writer.write(framed(correlation_of(frame) + b"\x00" + frame[16:]))

        async with serving(serve, connect=ending_after(1.5)) as (server, peers):
            long = asyncio.ensure_future(ask(peers, b"long"))
            while server.connections < 3:
                await asyncio.sleep(0.001)
            released.set()
            assert await long == b"long"
            assert await ask(peers, b"next") == b"next"

    run(scenario())
