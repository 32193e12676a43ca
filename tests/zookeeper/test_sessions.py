"""Sessions that are lost, found again and expire; what brokers do with them is in the tests of clusters."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.metadata.tree import (
    Check,
    Create,
    EventKind,
    NodeExists,
    SessionLost,
    Set,
    StoreUnavailable,
    TreeError,
    TreeEvent,
)
from penstock.stores.zookeeper import ZooKeeperOptions, ZooKeeperStore, open_store
from penstock.testing.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from tests.proxy import Proxy
from tests.zookeeper.waiting import until

SHORT_MS = 1_500
LONG_MS = 30_000


@pytest.fixture
def proxy(server: ZooKeeperServer) -> Iterator[Proxy]:
    with Proxy(server.address) as running:
        yield running


@pytest.fixture
def proxied(proxy: Proxy, address: str) -> str:
    """As `address`, through the proxy."""
    return proxy.address + "/" + address.partition("/")[2]


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble(tmp_path_factory.mktemp("ensemble")) as running:
        yield running


async def opened(address: str, session_timeout_ms: int = LONG_MS, timeout_s: float = 60.0) -> ZooKeeperStore:
    return await open_store(
        ZooKeeperOptions(address, session_timeout_ms=session_timeout_ms, timeout_s=timeout_s)
    )


def test_one_of_two_sessions_becomes_the_controller(address: str) -> None:
    async def go() -> None:
        stores = [await opened(address) for _ in range(2)]
        results = await asyncio.gather(
            *(store.create("/controller", ephemeral=True) for store in stores), return_exceptions=True
        )
        winners = [n for n, result in enumerate(results) if result == "/controller"]
        assert len(winners) == 1
        winner, loser = stores[winners[0]], stores[1 - winners[0]]
        assert isinstance(results[1 - winners[0]], NodeExists)
        events: list[TreeEvent] = []
        loser.watch("/controller", events.append)
        await loser.exists("/")
        await winner.close()
        await until(lambda: events == [TreeEvent(EventKind.DELETED, "/controller")])
        await loser.create("/controller", ephemeral=True)
        await loser.close()

    asyncio.run(go())


def test_a_watcher_hears_of_a_change_before_a_read_shows_it(address: str) -> None:
    async def go() -> None:
        writer, reader = await opened(address), await opened(address)
        for n in range(50):
            seen: list[TreeEvent] = []
            stop = reader.watch(f"/{n}", seen.append)
            await reader.exists("/")
            making = asyncio.ensure_future(writer.create(f"/{n}"))
            while not await reader.exists(f"/{n}"):
                pass
            assert seen == [TreeEvent(EventKind.CREATED, f"/{n}")]
            await making
            stop()
        await writer.close()
        await reader.close()

    asyncio.run(go())


def test_an_expired_session_loses_its_nodes_and_is_told_once(
    proxy: Proxy, proxied: str, address: str
) -> None:
    async def go() -> None:
        other, store = await opened(address), await opened(proxied, SHORT_MS)
        assert store.session_timeout_s == SHORT_MS / 1000
        seen_by_other: list[TreeEvent] = []
        seen: list[TreeEvent] = []
        connection: list[bool] = []
        other.watch("/", seen_by_other.append)
        store.watch("/brokers", seen.append)
        store.watch("/controller", seen.append)
        store.on_connection(connection.append)
        await store.create("/brokers")
        await store.create("/brokers/1", ephemeral=True)
        seen.clear()

        proxy.stall()
        await until(lambda: TreeEvent(EventKind.DELETED, "/brokers/1") in seen_by_other)
        assert seen == []
        proxy.heal()
        await until(lambda: seen != [])
        assert seen == [TreeEvent(EventKind.LOST, "/brokers"), TreeEvent(EventKind.LOST, "/controller")]
        assert connection == [False]
        for attempt in (
            store.get("/brokers"),
            store.create("/a"),
            store.multi([Create("/a")]),
            store.exists("/"),
        ):
            with pytest.raises(SessionLost, match="has ended"):
                await attempt

        seen.clear()
        before = other.session_id
        await store.reconnect()
        assert store.session_id not in (0, before)
        await store.create("/brokers/1", ephemeral=True)
        await other.create("/controller")
        await until(lambda: len(seen) == 2)
        assert seen == [
            TreeEvent(EventKind.CREATED, "/brokers/1"),
            TreeEvent(EventKind.CREATED, "/controller"),
        ]
        await store.close()
        await other.close()

    asyncio.run(go())


def test_a_lost_connection_keeps_the_session_and_its_nodes(proxy: Proxy, proxied: str, address: str) -> None:
    async def go() -> None:
        other, store = await opened(address), await opened(proxied)
        session_id = store.session_id
        seen: list[TreeEvent] = []
        connection: list[bool] = []
        store.on_connection(connection.append)
        await store.create("/brokers")
        await store.create("/brokers/1", ephemeral=True)
        store.watch("/brokers", seen.append)
        await store.exists("/")

        proxy.cut()
        await until(lambda: connection == [False])
        await other.set("/brokers/1", b"unheard")
        reading = asyncio.ensure_future(store.get("/brokers/1"))
        proxy.heal()
        await until(lambda: connection == [False, True])
        # Events may be missing: the watcher is told to look again.
        assert seen == [TreeEvent(EventKind.CHANGED, "/brokers")]
        assert (await reading).data == b"unheard"
        assert store.session_id == session_id
        await other.set("/brokers/1", b"heard")
        await until(lambda: seen[1:] == [TreeEvent(EventKind.CHANGED, "/brokers/1")])
        await store.close()
        assert await other.children("/brokers") == []
        await other.close()

    asyncio.run(go())


def test_a_server_that_is_started_again_knows_the_session(tmp_path: Path) -> None:
    async def go(server: ZooKeeperServer) -> None:
        store = await opened(server.address)
        connection: list[bool] = []
        store.on_connection(connection.append)
        session_id = store.session_id
        await store.create("/controller", b"one", ephemeral=True)
        server.kill()
        await until(lambda: connection == [False])
        await asyncio.to_thread(server.start)
        await until(lambda: connection == [False, True])
        assert store.session_id == session_id
        assert (await store.get("/controller")).data == b"one"
        await store.close()

    with ZooKeeperServer(tmp_path) as server:
        asyncio.run(go(server))


def test_an_ephemeral_node_whose_answer_was_lost_counts_as_made(
    proxy: Proxy, proxied: str, address: str
) -> None:
    async def go() -> None:
        other, store = await opened(address), await opened(proxied)
        seen: list[TreeEvent] = []
        other.watch("/controller", seen.append)
        await other.exists("/")
        proxy.stall(answers_only=True)
        making = asyncio.ensure_future(store.create("/controller", b"one", ephemeral=True))
        await until(lambda: seen != [])
        proxy.heal()
        assert await making == "/controller"
        with pytest.raises(NodeExists):
            await store.create("/controller", ephemeral=True)
        await store.close()
        await other.close()

    asyncio.run(go())


def test_a_change_whose_answer_was_lost_says_that_nobody_knows(
    proxy: Proxy, proxied: str, address: str
) -> None:
    async def go() -> None:
        other, store = await opened(address), await opened(proxied)
        seen: list[TreeEvent] = []
        connection: list[bool] = []
        other.watch("/a", seen.append)
        store.on_connection(connection.append)
        await other.exists("/")
        for attempt in (store.create("/a"), store.multi([Set("/a", b"two")]), store.delete("/a")):
            seen.clear()
            connection.clear()
            proxy.stall(answers_only=True)
            waiting = asyncio.ensure_future(attempt)
            await until(lambda: seen != [])
            proxy.heal()
            with pytest.raises(
                StoreUnavailable, match="the change of /a may or may not have been done"
            ) as caught:
                await waiting
            assert caught.value.maybe_done
            await until(lambda: connection == [False, True])
        await store.close()
        await other.close()

    asyncio.run(go())


def test_calls_end_at_their_deadline_with_a_line_that_names_the_address(proxy: Proxy, proxied: str) -> None:
    async def go() -> None:
        store = await opened(proxied, timeout_s=0.2)
        proxy.stall()
        with pytest.raises(StoreUnavailable) as asked:
            await store.get("/a")
        with pytest.raises(StoreUnavailable) as changed:
            await store.create("/a")
        connection: list[bool] = []
        store.on_connection(connection.append)
        proxy.cut()
        await until(lambda: connection == [False])
        with pytest.raises(StoreUnavailable) as unsent:
            await store.create("/a")
        assert [caught.value.maybe_done for caught in (asked, changed, unsent)] == [False, True, False]
        assert str(unsent.value) == str(asked.value) == f"ZooKeeper at {proxied} does not answer"
        proxy.heal()
        await until(lambda: connection == [False, True])
        await store.close()

    asyncio.run(go())


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_what_is_no_zookeeper_is_given_up(greeting: bytes | None) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert greeting is not None
        writer.write(greeting)
        await writer.drain()
        writer.close()

    async def go() -> None:
        listening = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        if greeting is None:
            listening.close()
        options = ZooKeeperOptions(f"127.0.0.1:{port}/kafka", connection_timeout_ms=300)
        with pytest.raises(StoreUnavailable, match=f"ZooKeeper at 127.0.0.1:{port}/kafka does not answer"):
            await open_store(options)
        listening.close()
        await listening.wait_closed()

    asyncio.run(go())


@pytest.mark.parametrize("address", ["", "host:port", "host:2181,", "/kafka", "host:2181/a//b", ":2181"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(TreeError, match="not an address of ZooKeeper"):
        asyncio.run(open_store(ZooKeeperOptions(address)))


def test_a_server_that_is_cut_off_answers_reads_and_proves_nothing(ensemble: ZooKeeperEnsemble) -> None:
    """Hence a broker proves by a change of nothing that its session lives."""

    async def go() -> None:
        leader = await asyncio.to_thread(ensemble.leader)
        near = next(server for server in ensemble.servers if server is not leader)
        far = [server for server in ensemble.servers if server is not near]
        store = await opened(near.address, 6_000, timeout_s=1.0)
        await store.create("/cut-off", ephemeral=True)
        await store.multi([Check("/cut-off")])
        for server in far:
            server.pause()
        try:
            assert await store.exists("/cut-off")
            with pytest.raises(StoreUnavailable):
                await store.multi([Check("/cut-off")])
        finally:
            for server in far:
                server.resume()
        await store.close()
        for server in ensemble.servers:
            await asyncio.to_thread(server.wait_until_ready)

    asyncio.run(go())


def test_a_silent_server_is_left_for_another_before_the_session_expires(ensemble: ZooKeeperEnsemble) -> None:
    async def go() -> None:
        store = await opened(ensemble.address, 6_000)
        (silent,) = (server for server in ensemble.servers if server.address == store.server)
        session_id = store.session_id
        await store.create("/controller", b"one", ephemeral=True)
        silent.pause()
        assert (await store.get("/controller")).data == b"one"
        assert store.session_id == session_id
        assert store.server != silent.address
        silent.resume()
        await store.close()

    asyncio.run(go())
