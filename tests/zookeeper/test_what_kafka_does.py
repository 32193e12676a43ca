"""A ZooKeeper that others use too: a path of our own, access lists, and trees of the size that brokers have."""

import asyncio

import pytest
from kazoo.client import KazooClient

from penstock.metadata.tree import Create, TreeError, TreeEvent, TreeNode
from penstock.stores.zookeeper import NODES_PER_READ, ZooKeeperOptions, open_store
from penstock.testing.zookeeper import ZooKeeperServer


def test_everything_is_kept_below_the_path_of_the_address(server: ZooKeeperServer, address: str) -> None:
    path = "/" + address.partition("/")[2]

    async def go() -> None:
        inner = await open_store(ZooKeeperOptions(f"{address}/east/kafka"))
        outer = await open_store(ZooKeeperOptions(server.address))
        seen: list[TreeEvent] = []
        outer.watch(path, seen.append)
        await outer.exists("/")
        await inner.create("/brokers", b"one")
        made = await inner.create("/brokers/change_", sequence=True)
        assert made == "/brokers/change_0000000000"
        assert set(await inner.subtree("/")) == {"/", "/brokers", made}
        assert (await outer.get(f"{path}/east/kafka/brokers")).data == b"one"
        await outer.exists("/")
        assert [event.path for event in seen] == [f"{path}/east/kafka{each}" for each in ("/brokers", made)]
        await inner.close()
        await outer.close()

    asyncio.run(go())


def test_only_those_who_know_the_password_may_change_what_we_wrote(address: str) -> None:
    async def go() -> None:
        options = ZooKeeperOptions(address, set_acl=True, auth="penstock:secret")
        ours, again = await open_store(options), await open_store(options)
        stranger = await open_store(options._replace(set_acl=False, auth="penstock:guess"))
        for path in ("/brokers", "/config", "/config/users", "/config/users/alice", "/consumers"):
            await ours.create(path, b"one")
        assert await again.set("/brokers", b"two") == 1
        assert (await stranger.get("/brokers")).data == b"two"
        for attempt in (
            stranger.set("/brokers", b"three"),
            stranger.create("/brokers/ids"),
            stranger.delete("/config/users/alice"),
            stranger.multi([Create("/brokers/ids")]),
            stranger.get("/config/users/alice"),
        ):
            with pytest.raises(TreeError, match="it belongs to another user"):
                await attempt
        await stranger.create("/consumers/legacy")  # older consumers write there, whoever they are
        for store in (ours, again, stranger):
            await store.close()

    asyncio.run(go())


def test_access_lists_without_a_login_are_refused_with_a_word_of_advice(address: str) -> None:
    with pytest.raises(TreeError, match=r"zookeeper\.set\.acl needs a login"):
        asyncio.run(open_store(ZooKeeperOptions(address, set_acl=True)))


def test_a_tree_of_many_nodes_is_read_whole(address: str) -> None:
    topics = 3 * NODES_PER_READ

    async def go() -> dict[str, TreeNode]:
        store = await open_store(ZooKeeperOptions(address))
        await store.create("/topics")
        ops = [
            op
            for n in range(topics)
            for op in (
                Create(f"/topics/t{n}", b"%d" % n),
                Create(f"/topics/t{n}/partitions"),
                Create(f"/topics/t{n}/partitions/0", bytes(90)),
            )
        ]
        await store.multi(ops)
        nodes = await store.subtree("/topics")
        await store.close()
        return nodes

    nodes = asyncio.run(go())
    assert len(nodes) == 1 + 3 * topics
    assert nodes[f"/topics/t{topics - 1}"].data == b"%d" % (topics - 1)


def test_other_clients_see_the_nodes_as_kafka_writes_them(server: ZooKeeperServer, address: str) -> None:
    async def go() -> int:
        store = await open_store(ZooKeeperOptions(address))
        await store.create("/controller", b"{}", ephemeral=True)
        seen = await asyncio.to_thread(look)
        await store.close()
        return seen

    def look() -> int:
        client = KazooClient(address)
        client.start()
        try:
            data, stat = client.get("/controller")
            assert data == b"{}"
            return int(stat.ephemeralOwner)
        finally:
            client.stop()
            client.close()

    assert asyncio.run(go()) != 0
