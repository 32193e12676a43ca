"""Connections over TLS: real sockets, a receiver that echoes, and OpenSSL on the other side."""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.net import tls as tls_sockets
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection
from penstock.net.listener import Listener, Tls, bind
from penstock.net.output import TURN_BYTES
from penstock.net.tls import CHUNK_BYTES, Engine, TlsSocket, enter
from penstock.runtime.pools import Pools
from penstock.security.principals import ANONYMOUS
from penstock.stack.certificates import Authority
from tests.unit.net.test_connection import LIMITS, File, FileSlice, echo, framed

HOST = "127.0.0.1"
DEADLINE_S = 60


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server_side(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server").pem())
    return context


@pytest.fixture(scope="module")
def client_side(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.path))


@asynccontextmanager
async def serving(
    context: ssl.SSLContext, receiver: Callable[[Connection, memoryview], Any] = echo
) -> AsyncIterator[Listener]:
    loop = asyncio.get_running_loop()
    pools = Pools(loop)
    buffers = ReceiveBuffers(64 << 20)
    secured = Tls(
        context=lambda: context, identify=lambda _: ANONYMOUS, pool=pools.handshakes, timeout_s=DEADLINE_S
    )
    listener = Listener("TLS", bind(HOST, 0), loop, receiver, buffers, lambda: LIMITS, secured)
    listener.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield listener
    finally:
        listener.stop_accepting()
        listener.close()
        pools.close()
        assert buffers.partial_bytes == 0


@asynccontextmanager
async def connected(
    listener: Listener, context: ssl.SSLContext
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(HOST, listener.port, ssl=context, limit=1 << 26)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


@pytest.mark.parametrize("size", [8, 100, 16 * 1024 - 4, 16 * 1024, CHUNK_BYTES, 300_000, 3_000_000])
def test_a_frame_of_any_size_comes_back_as_it_was(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext, size: int
) -> None:
    async def scenario() -> None:
        async with serving(server_side) as listener, connected(listener, client_side) as (reader, writer):
            body = os.urandom(size)
            writer.write(framed(body) + framed(b"and after"))
            assert await read_frame(reader) == body
            assert await read_frame(reader) == b"and after"

    asyncio.run(scenario())


def test_many_requests_in_one_write_are_all_answered(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    """More than a turn's worth of what OpenSSL holds and no socket tells of."""

    async def scenario() -> None:
        async with serving(server_side) as listener, connected(listener, client_side) as (reader, writer):
            bodies = [struct.pack(">i", number) + bytes(2000) for number in range(1000)]
            writer.write(b"".join(map(framed, bodies)))
            assert [await read_frame(reader) for _ in bodies] == bodies

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_request_together_with_the_end_of_the_handshake_is_answered(
    server_side: ssl.SSLContext, authority: Authority, version: ssl.TLSVersion
) -> None:
    async def scenario() -> None:
        context = ssl.create_default_context(cafile=str(authority.path))
        context.maximum_version = version
        arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(arriving, leaving, server_hostname=HOST)
        async with serving(server_side) as listener:
            reader, writer = await asyncio.open_connection(HOST, listener.port)
            is_open = False
            while not is_open:
                try:
                    client.do_handshake()
                    is_open = True
                    client.write(framed(b"one at once"))
                except ssl.SSLWantReadError:
                    pass
                writer.write(leaving.read())  # of TLS 1.3 the handshake's end and the request are one segment
                if not is_open:
                    arriving.write(await reader.read(1 << 16))
            answer = b""
            while answer != framed(b"one at once"):
                chunk = await reader.read(1 << 16)
                assert chunk
                arriving.write(chunk)
                try:
                    answer += client.read(1 << 16)
                except ssl.SSLWantReadError:
                    continue
            writer.transport.abort()

    asyncio.run(scenario())


def test_slices_of_files_arrive_whole_at_a_slow_reader(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext, tmp_path: Path
) -> None:
    """The socket takes less than is given to it, again and again."""
    content = os.urandom(5_000_000)
    path = tmp_path / "file"
    path.write_bytes(content)
    file = File(path)
    size = len(content)

    def receiver(_: Connection, __: memoryview) -> tuple[Any, ...]:
        slices = (FileSlice(file, 0, size - 5), FileSlice(file, size - 5, 5))
        return (struct.pack(">i", size + 4), b"head", *slices)

    async def scenario() -> None:
        async with serving(server_side, receiver) as listener:
            loop = asyncio.get_running_loop()
            plain = socket.socket()
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

            def fetch() -> bytes:
                plain.settimeout(DEADLINE_S)
                plain.connect((HOST, listener.port))
                with client_side.wrap_socket(plain, server_hostname=HOST) as client:
                    client.sendall(framed(b"question") * 2)
                    received = bytearray()
                    while len(received) < 2 * (size + 8):
                        chunk = client.recv(10_000)
                        assert chunk
                        received += chunk
                    return bytes(received)

            answer = struct.pack(">i", size + 4) + b"head" + content
            assert await loop.run_in_executor(None, fetch) == answer * 2

    asyncio.run(scenario())


def test_the_end_of_a_connection_is_said_by_both_sides(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def scenario() -> None:
        async with serving(server_side) as listener:
            loop = asyncio.get_running_loop()

            def say_goodbye() -> socket.socket:
                plain = socket.create_connection((HOST, listener.port), timeout=DEADLINE_S)
                client = client_side.wrap_socket(plain, server_hostname=HOST, suppress_ragged_eofs=False)
                client.sendall(framed(b"the last one"))
                assert client.recv(100) == framed(b"the last one")
                return (
                    client.unwrap()
                )  # waits for the other side's close_notify; an end without it is an error

            plain = await loop.run_in_executor(None, say_goodbye)
            assert await loop.run_in_executor(None, plain.recv, 1) == b""
            plain.close()
            assert not listener.connections

    asyncio.run(scenario())


def test_what_came_before_the_goodbye_is_handled(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    seen: list[bytes] = []

    def receiver(_: Connection, frame: memoryview) -> None:
        seen.append(bytes(frame))

    async def scenario() -> None:
        ended = asyncio.Event()
        async with serving(server_side, receiver) as listener:
            farewell = listener._forget_host
            listener._forget_host = lambda host: (farewell(host), ended.set())  # type: ignore[method-assign,assignment,return-value]

            def send() -> None:
                plain = socket.create_connection((HOST, listener.port), timeout=DEADLINE_S)
                with client_side.wrap_socket(plain, server_hostname=HOST) as client:
                    client.sendall(framed(b"a request") * 3)
                    try:
                        client.unwrap()
                    except OSError:
                        pass

            await asyncio.get_running_loop().run_in_executor(None, send)
            await ended.wait()
        assert seen == [b"a request"] * 3

    asyncio.run(scenario())


class Pair:
    """Both ends of a connection after their handshake; ours does not block."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        self.ours_plain, self.theirs_plain = socket.socketpair()
        self.ours_plain.setblocking(False)
        self.theirs_plain.setblocking(False)
        self.arriving, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.theirs = client.wrap_bio(self.arriving, self.leaving, server_hostname=HOST)
        engine = Engine(self.ours_plain, server, server_side=True)
        for _ in range(2):
            self._step(self.theirs)
            self.theirs_plain.sendall(self.leaving.read())
            engine.receive()
            self._step(engine.tls)
            assert engine.flush()
            self.arriving.write(self.theirs_plain.recv(1 << 16))
        self._step(self.theirs)
        self.ours = TlsSocket(self.ours_plain, engine)

    @staticmethod
    def _step(side: ssl.SSLObject) -> None:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            pass

    def their_bytes(self, *, until: int) -> bytes:
        received = bytearray()
        while len(received) < until:
            self.arriving.write(self.theirs_plain.recv(1 << 16))
            try:
                while True:
                    received += self.theirs.read(1 << 16)
            except ssl.SSLWantReadError:
                pass
            self.ours.flush()
        return bytes(received)

    def close(self) -> None:
        self.ours.close()
        self.theirs_plain.close()


@pytest.fixture
def pair(server_side: ssl.SSLContext, client_side: ssl.SSLContext) -> Any:
    made = Pair(server_side, client_side)
    yield made
    made.close()


def test_what_the_socket_does_not_take_is_kept_and_is_bounded(pair: Pair) -> None:
    data = os.urandom(1 << 20)
    sent = 0
    while pair.ours.flush():
        sent += pair.ours.send(data[sent:])
    assert 0 < sent < len(data)
    assert not pair.ours.flush()
    with pytest.raises(BlockingIOError):
        pair.ours.send(b"and not more than a chunk of it")
    assert pair.their_bytes(until=sent) == data[:sent]
    assert pair.ours.flush()
    assert pair.ours.send(b"the rest") == 8
    assert pair.their_bytes(until=8) == b"the rest"


def test_a_record_in_pieces_is_taken_when_it_is_whole(pair: Pair) -> None:
    buffer = bytearray(100)
    pair.theirs.write(b"in pieces")
    record = pair.leaving.read()
    for piece in (record[:3], record[3:20]):
        pair.theirs_plain.send(piece)
        with pytest.raises(BlockingIOError):
            pair.ours.recv_into(buffer)
        assert not pair.ours.has_more
    pair.theirs_plain.send(record[20:])
    assert pair.ours.recv_into(buffer) == 9


def test_what_a_buffer_does_not_hold_comes_next_time(pair: Pair) -> None:
    pair.theirs.write(b"0123456789")
    pair.theirs_plain.send(pair.leaving.read())
    buffer = bytearray(4)
    received = b""
    for _ in range(3):
        received += bytes(buffer[: pair.ours.recv_into(buffer)])
    assert received == b"0123456789"
    assert not pair.ours.has_more


def test_bytes_that_were_changed_on_the_way_are_refused(pair: Pair) -> None:
    pair.theirs.write(b"100 to ana")
    record = bytearray(pair.leaving.read())
    record[-1] ^= 1
    pair.theirs_plain.send(record)
    with pytest.raises(ssl.SSLError):
        pair.ours.recv_into(bytearray(100))


def test_a_cut_connection_is_an_end(pair: Pair) -> None:
    pair.theirs_plain.shutdown(socket.SHUT_WR)
    assert pair.ours.recv_into(bytearray(100)) == 0


def test_a_header_leaves_together_with_what_follows(pair: Pair) -> None:
    assert pair.ours.send(b"head", socket.MSG_MORE) == 4
    with pytest.raises(BlockingIOError):
        pair.theirs_plain.recv(1, socket.MSG_PEEK)
    pair.ours.send(b"body")
    assert pair.their_bytes(until=8) == b"headbody"


def test_answers_that_nobody_reads_have_a_bound(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL answers by itself to a client that asks for new keys, over and over."""
    monkeypatch.setattr(tls_sockets, "MAX_LEFT_BYTES", 1000)
    while pair.ours.flush():
        pair.ours.send(bytes(CHUNK_BYTES))
    pair.ours._leaving.write(bytes(1001))
    pair.theirs.write(b"more")
    pair.theirs_plain.send(pair.leaving.read())
    with pytest.raises(ConnectionError, match="new keys"):
        pair.ours.recv_into(bytearray(100))


def test_logins_at_other_brokers_use_a_blocking_socket(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext
) -> None:
    async def scenario() -> None:
        async with serving(server_side) as listener:

            def converse() -> bytes:
                plain = socket.create_connection((HOST, listener.port), timeout=DEADLINE_S)
                entered = enter(plain, client_side, HOST)
                question = framed(os.urandom(200_000))
                entered.sendall(question)
                answer = b""
                while len(answer) < len(question):
                    answer += entered.recv(len(question) - len(answer))
                entered.close()
                assert answer == question
                return answer

            await asyncio.get_running_loop().run_in_executor(None, converse)

    asyncio.run(scenario())


def test_clients_cannot_ask_for_another_handshake(authority: Authority) -> None:
    from penstock.security.tls_context import server_context

    context = server_context({"ssl.keystore.location": str(authority.issue("server").pem())})
    assert context.options & ssl.OP_NO_RENEGOTIATION


class Flood:
    """A peer that sends faster than we read."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self.reads = 0

    def recv(self, size: int) -> bytes:
        self.reads += 1
        while self._pair.leaving.pending < size:
            self._pair.theirs.write(b"x")
        return self._pair.leaving.read(size)


def test_a_flood_of_tiny_records_is_read_for_one_turn_only(pair: Pair) -> None:
    """A byte in each: what fills a turn's buffer takes half a second to decipher."""
    flood = Flood(pair)
    pair.ours._engine._socket = flood  # type: ignore[assignment]
    buffer = bytearray(TURN_BYTES)
    taken = pair.ours.recv_into(buffer)
    assert flood.reads <= TURN_BYTES // CHUNK_BYTES + 1
    assert 0 < taken < len(buffer)
    assert not pair.ours.has_more  # the socket tells of the rest
    assert pair.ours.recv_into(buffer) > 0
    pair.ours._engine._socket = pair.ours_plain


def test_a_flood_of_records_without_data_is_read_for_one_turn_only(pair: Pair) -> None:
    """As new keys, over and over."""
    flood, arriving, tls = Flood(pair), pair.ours._arriving, pair.ours._tls

    class Keys:
        pending = staticmethod(lambda: 0)

        def read(self, size: int, view: memoryview) -> int:
            assert flood.reads < 10, "nobody else gets a turn"
            arriving.read()
            raise ssl.SSLWantReadError

    pair.ours._engine._socket = flood  # type: ignore[assignment]
    pair.ours._tls = Keys()  # type: ignore[assignment]
    with pytest.raises(BlockingIOError):
        pair.ours.recv_into(bytearray(100))
    assert flood.reads == 1
    assert not pair.ours.has_more
    pair.ours._engine._socket, pair.ours._tls = pair.ours_plain, tls


def test_a_blocking_socket_waits_for_the_rest_of_a_record(pair: Pair) -> None:
    pair.theirs.write(b"in pieces")
    record = pair.leaving.read()

    pieces = [record[:3], record[3:20], record[20:]]

    class Pieces:
        def recv(self, size: int) -> bytes:
            return pieces.pop(0)

    pair.ours._engine._socket = Pieces()  # type: ignore[assignment]
    assert pair.ours.recv(100) == b"in pieces"
    pair.ours._engine._socket = pair.ours_plain
