"""Nodes that belong to another user."""

import asyncio

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from penstock.metadata.tree import TreeError
from penstock.stores.zookeeper import ZooKeeperOptions, open_store


def test_what_we_may_not_read_is_refused_and_not_taken_for_deleted(address: str) -> None:
    """One node after the other and all of a tree at once: a topic that is not read would be deleted."""

    async def go() -> None:
        store = await open_store(ZooKeeperOptions(address))
        for path in ("/topics", "/topics/orders", "/topics/payments"):
            await store.create(path)
        await asyncio.to_thread(give_away, address, "/topics/orders")
        for reading in (store.get("/topics/orders"), store.subtree("/topics")):
            with pytest.raises(
                TreeError, match=r"ZooKeeper does not allow access to .*/topics/orders: it belongs"
            ):
                await reading
        assert set(await store.subtree("/topics/payments")) == {"/topics/payments"}
        assert await store.subtree("/topics/none") == {}
        await store.close()

    asyncio.run(go())


def give_away(address: str, path: str) -> None:
    client = KazooClient(address)
    client.start()
    client.set_acls(path, [make_digest_acl("somebody", "secret", all=True)])
    client.stop()
    client.close()
