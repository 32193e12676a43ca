"""A session beside servers that say what a real one seldom says, over real sockets; real ones are in tests/zookeeper."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from threading import current_thread
from typing import Any

import pytest

from penstock.stores import zookeeper_messages as messages
from penstock.stores import zookeeper_session as module
from penstock.stores import zookeeper_wire as wire
from penstock.stores.zookeeper_session import ConnectionLoss, Session, SessionEvents

PATIENCE_S = 20.0
TIMEOUT_MS = 3_000
Script = Callable[["Peer"], Awaitable[None]]


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    async def request(self) -> tuple[int, int]:
        """xid and type of the next one that is no ping."""
        while True:
            xid, kind = struct.unpack(">ii", (await self.frame())[:8])
            if xid == wire.PING_XID:
                self.answer(xid)
            else:
                return xid, kind

    async def is_asked_for_its_state(self) -> bool:
        return await self._reader.readexactly(4) == b"srvr"

    def say(self, text: str) -> None:
        self._writer.write(text.encode())

    def write(self, data: bytes) -> None:
        self._writer.write(struct.pack(">i", len(data)) + data)

    def answer(self, xid: int, *, code: int = 0, zxid: int = 1, body: bytes = b"") -> None:
        self.write(struct.pack(">iqi", xid, zxid, code) + body)

    async def welcome(self, session_id: int = 7, timeout_ms: int = TIMEOUT_MS) -> tuple[int, int]:
        """What was asked for: the session, and the last change that the client knows."""
        _, last_zxid, _, asked = struct.unpack(">iqiq", (await self.frame())[:24])
        self.write(struct.pack(">iiqi", 0, timeout_ms, session_id, 16) + bytes(16) + b"\0")
        return asked, last_zxid


class Heard:
    """What a session told, in its order."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.answers: list[object] = []

    @property
    def as_events(self) -> SessionEvents:
        return SessionEvents(
            lambda granted_s: self.events.append(("connected", granted_s)),
            lambda: self.events.append("suspended"),
            lambda: self.events.append("ended"),
            lambda kind, path: self.events.append((kind, path)),
            lambda lacks: self.events.append(("absent", lacks)),
        )

    def take(self, value: object, error: Exception | None) -> None:
        self.answers.append(value if error is None else type(error))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def play(
    scripts: list[Script],
    main: Callable[[Session, Heard], Awaitable[None]],
    *,
    hosts: Sequence[str] = ("127.0.0.1",),
) -> None:
    """Each connection meets the next script; the last one meets all that follow."""

    async def go() -> None:
        met = iter(range(1_000_000))

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await scripts[min(next(met), len(scripts) - 1)](Peer(reader, writer))
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        heard = Heard()
        session = Session(
            [(host, port) for host in hosts],
            timeout_s=TIMEOUT_MS / 1000,
            auth=None,
            events=heard.as_events,
            loop=asyncio.get_running_loop(),
        )
        session.start()
        try:
            await main(session, heard)
        finally:
            session.drop_connection()
            await asyncio.wait_for(session.close(), PATIENCE_S)
            for _ in range(5):  # asyncio drops what it is just accepting when the server closes, unclosed
                await asyncio.sleep(0)
            server.close()

    asyncio.run(go())


async def stay(peer: Peer) -> None:
    """Takes the session, and answers everything with yes until the other side closes."""
    await peer.welcome()
    while True:
        xid, _ = await peer.request()
        peer.answer(xid)


def test_a_lost_connection_is_followed_by_one_for_the_same_session_that_knows_no_less() -> None:
    asked: list[tuple[int, int]] = []

    async def close_after_an_answer(peer: Peer) -> None:
        asked.append(await peer.welcome())
        xid, _ = await peer.request()
        peer.answer(xid, zxid=40)

    async def note(peer: Peer) -> None:
        asked.append(await peer.welcome())
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        session.send(messages.Delete("/a", -1), heard.take)
        session.send(messages.Delete("/b", -1), heard.take)
        await until(lambda: len(asked) == 2 and len(heard.events) == 3)
        assert heard.answers == [None, ConnectionLoss]
        assert asked == [(0, 0), (7, 40)]
        connected = ("connected", TIMEOUT_MS / 1000)
        assert heard.events == [connected, "suspended", connected]

    play([close_after_an_answer, note], main)


def test_a_session_that_the_server_does_not_know_has_ended_and_is_not_asked_for_again() -> None:
    async def close(peer: Peer) -> None:
        await peer.welcome()

    async def expired(peer: Peer) -> None:
        await peer.welcome(session_id=0, timeout_ms=0)
        await peer.frame()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: "ended" in heard.events)
        assert heard.events[1:] == ["suspended", "ended"]
        session.send(messages.Exists("/a"), heard.take)
        assert heard.answers == [ConnectionLoss]

    play([close, expired], main)


def test_answers_and_events_keep_their_order() -> None:
    async def tell_between(peer: Peer) -> None:
        await peer.welcome()
        first, _ = await peer.request()
        second, _ = await peer.request()
        peer.answer(first)
        peer.answer(wire.WATCH_XID, zxid=-1, body=struct.pack(">ii", 3, 3) + wire.string("/a"))
        peer.answer(second)
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        heard.events.clear()
        session.send(messages.Delete("/a", -1), lambda value, error: heard.events.append("first"))
        session.send(messages.Delete("/a", -1), lambda value, error: heard.events.append("second"))
        await until(lambda: len(heard.events) == 3)
        assert heard.events == ["first", (3, "/a"), "second"]

    play([tell_between], main)


def test_a_server_that_answers_what_was_not_asked_is_left() -> None:
    async def confuse(peer: Peer) -> None:
        await peer.welcome()
        xid, _ = await peer.request()
        peer.answer(xid + 1)
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        session.send(messages.Delete("/a", -1), heard.take)
        await until(lambda: len(heard.events) == 3)
        assert heard.answers == [ConnectionLoss]
        session.send(messages.Delete("/a", -1), heard.take)
        await until(lambda: heard.answers == [ConnectionLoss, None])

    play([confuse, stay], main)


def test_a_session_that_moved_to_another_server_is_looked_for_there() -> None:
    async def moved(peer: Peer) -> None:
        await peer.welcome()
        xid, _ = await peer.request()
        peer.answer(xid, code=wire.Code.SESSION_MOVED)
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        session.send(messages.Delete("/a", -1), heard.take)
        await until(lambda: len(heard.events) == 3)
        assert heard.answers == [ConnectionLoss]

    play([moved, stay], main)


def test_a_silent_server_is_left_before_the_session_expires() -> None:
    async def fall_silent(peer: Peer) -> None:
        await peer.welcome()
        while True:
            await peer.frame()

    async def main(session: Session, heard: Heard) -> None:
        began = asyncio.get_running_loop().time()
        await until(lambda: "suspended" in heard.events)
        assert asyncio.get_running_loop().time() - began < TIMEOUT_MS / 1000

    play([fall_silent, stay], main)


def test_signs_of_life_come_each_third_of_the_timeout() -> None:
    heard_at: list[float] = []

    async def listen(peer: Peer) -> None:
        await peer.welcome(timeout_ms=600)
        loop = asyncio.get_running_loop()
        heard_at.append(loop.time())
        while True:
            await peer.frame()
            heard_at.append(loop.time())
            peer.answer(wire.PING_XID)

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: len(heard_at) > 6)
        assert "suspended" not in heard.events

    play([listen], main)


def test_a_server_that_takes_and_drops_us_each_time_is_asked_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def drop(peer: Peer) -> None:
        await peer.welcome()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events.count("suspended") >= 8)

    monkeypatch.setattr(module, "sleep", sleep)
    play([drop], main)
    assert len(slept) >= 7
    assert max(slept) > 4 * module.RETRY_DELAY_S


def test_a_server_that_never_says_welcome_is_given_up() -> None:
    async def sulk(peer: Peer) -> None:
        await peer.frame()
        await peer.frame()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        assert heard.events == [("connected", TIMEOUT_MS / 1000)]

    play([sulk, stay], main)


def test_a_close_is_said_and_waited_for() -> None:
    said: list[int] = []

    async def note(peer: Peer) -> None:
        await peer.welcome()
        xid, kind = await peer.request()
        said.append(kind)
        peer.answer(xid)

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        await session.close()
        assert said == [wire.CLOSE_TYPE]
        assert "suspended" not in heard.events

    play([note], main)


def test_a_server_whose_name_can_be_none_keeps_nobody_from_the_others() -> None:
    async def serve(peer: Peer) -> None:
        await peer.welcome()
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        assert heard.events == [("connected", 3.0)]
        session.drop_connection()
        await until(lambda: len(heard.events) == 3)
        assert heard.events == [("connected", 3.0), "suspended", ("connected", 3.0)]

    play([serve], main, hosts=["no..name", "l" * 64, "127.0.0.1"])


def test_names_are_looked_up_by_threads_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on the loop nor in a pool that others wait for."""
    real = socket.getaddrinfo
    looked_up_in: list[str] = []

    def look_up(*arguments: Any, **more: Any) -> Any:
        looked_up_in.append(current_thread().name)
        return real(*arguments, **more)

    async def serve(peer: Peer) -> None:
        await peer.welcome()
        await peer.request()

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        assert looked_up_in
        assert all(name.startswith("penstock-zookeeper-names") for name in looked_up_in)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    play([serve], main)


def test_servers_that_know_less_than_the_session_has_seen_are_told_of() -> None:
    async def close_after_an_answer(peer: Peer) -> None:
        await peer.welcome()
        xid, _ = await peer.request()
        peer.answer(xid, zxid=0x40)

    async def refuse(peer: Peer) -> None:
        """As a server does whose data was lost: without a word, but to who asks for its state."""
        if await peer.is_asked_for_its_state():
            peer.say("Zookeeper version: 3.9.2\nZxid: 0x5\nMode: standalone\nNode count: 5\n")

    async def main(session: Session, heard: Heard) -> None:
        await until(lambda: heard.events)
        session.send(messages.GetData("/a"), heard.take)
        await until(lambda: len(heard.events) >= 3)
        absent = heard.events[2]
        assert isinstance(absent, tuple)
        assert absent[0] == "absent"
        assert absent[1].endswith("is at zxid 0x5, this broker was at 0x40")

    play([close_after_an_answer, refuse], main)
