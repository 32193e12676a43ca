"""Sessions with the ZooKeeper in memory: lost, found again, expired; as with the real one, in no time."""

import asyncio
import random
from collections.abc import Callable

import pytest

from penstock.metadata.tree import (
    Create,
    EventKind,
    NodeExists,
    SessionLost,
    Set,
    StoreUnavailable,
    TreeEvent,
)
from simulation.memory_store import MemorySession, MemoryZooKeeper

SESSION_S = 0.05
DEADLINE_S = 60.0
LOST = EventKind.LOST


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.001)


async def world(
    session_timeout_s: float = DEADLINE_S, sessions: int = 2, delay_s: Callable[[], float] | None = None
) -> tuple[MemoryZooKeeper, list[MemorySession]]:
    zookeeper = MemoryZooKeeper(
        asyncio.get_running_loop(), session_timeout_s=session_timeout_s, delay_s=delay_s
    )
    opened = [MemorySession(zookeeper, timeout_s=DEADLINE_S) for _ in range(sessions)]
    for session in opened:
        await session.reconnect()
    return zookeeper, opened


@pytest.mark.parametrize("silently", [False, True])
def test_a_session_that_is_away_too_long_expires(silently: bool) -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world(SESSION_S)
        seen: list[TreeEvent] = []
        seen_by_other: list[TreeEvent] = []
        connection: list[bool] = []
        store.watch("/brokers", seen.append)
        other.watch("/", seen_by_other.append)
        store.on_connection(connection.append)
        await store.create("/brokers")
        await store.create("/brokers/1", ephemeral=True)
        seen.clear()
        zookeeper.disconnect(store, silently=silently)
        await until(lambda: TreeEvent(EventKind.DELETED, "/brokers/1") in seen_by_other)
        await until(lambda: connection == [False])
        assert seen == []
        zookeeper.connect(store)
        await until(lambda: seen == [TreeEvent(LOST, "/brokers")])
        for attempt in (store.exists("/"), store.create("/a"), store.multi([Create("/a")])):
            with pytest.raises(SessionLost):
                await attempt
        await store.reconnect()
        await store.create("/brokers/1", ephemeral=True)
        assert seen[1:] == [TreeEvent(EventKind.CREATED, "/brokers/1")]
        assert connection == [False]

    asyncio.run(go())


def test_a_session_that_is_back_in_time_goes_on() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world()
        session_id = store.session_id
        seen: list[TreeEvent] = []
        connection: list[bool] = []
        store.watch("/a", seen.append)
        store.on_connection(connection.append)
        await store.create("/a", ephemeral=True)
        seen.clear()
        zookeeper.disconnect(store)
        await other.set("/a", b"unheard")
        reading = asyncio.ensure_future(store.get("/a"))
        await until(lambda: connection == [False])
        zookeeper.connect(store)
        assert (await reading).data == b"unheard"
        assert connection == [False, True]
        assert seen == [TreeEvent(EventKind.CHANGED, "/a")]
        assert store.session_id == session_id
        await other.set("/a", b"heard")
        await store.exists("/")
        assert len(seen) == 2

    asyncio.run(go())


def test_a_session_may_be_ended_while_it_is_connected() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world()
        seen: list[TreeEvent] = []
        store.watch("/", seen.append)
        await store.create("/a", ephemeral=True)
        zookeeper.expire(store)
        await until(lambda: TreeEvent(LOST, "/") in seen)
        assert not await other.exists("/a")
        await store.reconnect()
        assert store.session_id != other.session_id

    asyncio.run(go())


def test_sessions_outlive_a_store_that_is_down() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world(SESSION_S)
        connection: list[bool] = []
        store.on_connection(connection.append)
        await store.create("/a", ephemeral=True)
        zookeeper.stop()
        await until(lambda: connection == [False])
        waiting = asyncio.ensure_future(other.exists("/a"))
        zookeeper.start()
        assert await waiting
        await until(lambda: connection == [False, True])
        impatient = MemorySession(zookeeper, timeout_s=0.01)
        await impatient.reconnect()
        zookeeper.stop()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await impatient.exists("/")
        zookeeper.start()
        await store.exists("/")

    asyncio.run(go())


def test_a_change_whose_answer_is_lost_may_have_been_done() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world()
        await store.create("/a")
        seen: list[TreeEvent] = []
        other.watch("/", seen.append)
        await other.exists("/")
        zookeeper.delay_s = lambda: 0.001
        changing = asyncio.ensure_future(store.multi([Set("/a", b"two")]))
        making = asyncio.ensure_future(store.create("/controller", ephemeral=True))
        await until(lambda: zookeeper.tree.owner("/controller") is not None)
        zookeeper.disconnect(store)
        with pytest.raises(StoreUnavailable, match="may or may not have been done") as caught:
            await changing
        assert caught.value.maybe_done
        zookeeper.connect(store)
        assert await making == "/controller"
        with pytest.raises(NodeExists):
            await store.create("/controller", ephemeral=True)

    asyncio.run(go())


def test_messages_keep_their_order_whatever_they_take() -> None:
    async def go(seed: int) -> list[TreeEvent]:
        chance = random.Random(seed)
        _, (store, other) = await world(delay_s=lambda: chance.random() / 1000)
        seen: list[TreeEvent] = []
        other.watch("/", seen.append)
        await other.exists("/")
        await asyncio.gather(*(store.create(f"/{n}") for n in range(20)))
        await until(lambda: len(seen) == 20)
        return seen

    for seed in range(3):
        assert [event.path for event in asyncio.run(go(seed))] == [f"/{n}" for n in range(20)]


def test_a_watcher_hears_of_a_change_before_a_read_shows_it() -> None:
    async def go() -> None:
        chance = random.Random(1)
        _, (store, other) = await world(delay_s=lambda: chance.random() / 1000)
        seen: list[TreeEvent] = []
        other.watch("/", seen.append)
        await other.exists("/")
        making = asyncio.ensure_future(store.create("/a"))
        while not await other.exists("/a"):
            pass
        assert seen == [TreeEvent(EventKind.CREATED, "/a")]
        await making

    asyncio.run(go())


def test_a_server_that_lags_answers_reads_from_what_it_knew_and_tells_of_changes_in_their_order() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world()
        await other.create("/a", b"one")
        seen: list[TreeEvent] = []
        store.watch("/", seen.append)
        await store.exists("/")
        zookeeper.lag(store, lambda: DEADLINE_S)
        await other.set("/a", b"two")
        await other.create("/b")
        assert (await store.get("/a")).data == b"one"
        assert await store.children("/") == ["a"]
        assert seen == []
        # A change of its own is not decided there, and brings it up to date.
        await store.create("/c")
        assert seen == [
            TreeEvent(EventKind.CHANGED, "/a"),
            TreeEvent(EventKind.CREATED, "/b"),
            TreeEvent(EventKind.CREATED, "/c"),
        ]
        for path in ("/a", "/b", "/c"):
            assert await store.get(path) == await other.get(path)
        await other.delete("/b")
        assert await store.exists("/b")
        zookeeper.catch_up(store)
        assert not await store.exists("/b")

    asyncio.run(go())


def test_a_server_that_is_cut_off_reads_on_while_the_session_runs_out() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world(SESSION_S)
        seen: list[TreeEvent] = []
        await store.create("/brokers", ephemeral=True)
        store.watch("/brokers", seen.append)
        zookeeper.cut_off_server(store)
        while await other.exists("/brokers"):
            await asyncio.sleep(0.001)
        assert await store.exists("/brokers")
        assert seen == []
        with pytest.raises(StoreUnavailable) as caught:
            await store.set("/brokers", b"two")  # the client looks for another server meanwhile
        assert caught.value.maybe_done
        await until(lambda: seen == [TreeEvent(LOST, "/brokers")])

    asyncio.run(go())


def test_a_server_that_is_back_in_time_lets_changes_through() -> None:
    async def go() -> None:
        zookeeper, (store, other) = await world()
        await store.create("/brokers", ephemeral=True)
        zookeeper.cut_off_server(store)
        changing = asyncio.ensure_future(store.set("/brokers", b"two"))
        await other.exists("/")
        assert (await other.get("/brokers")).data == b""
        zookeeper.catch_up(store)
        assert await changing == 1
        assert (await other.get("/brokers")).data == b"two"

    asyncio.run(go())
