"""A deletion that was cut short, wherever that was, can be asked for again, and leaves nothing behind."""

import asyncio
from typing import Any

import pytest

from penstock.broker.metadata.unfinished import marked_topics, nodes_of
from penstock.controller.decision import Decision, chunks
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics, incomplete_topics
from penstock.metadata import znodes
from penstock.metadata.image import BrokerRegistration, ClusterImage
from penstock.metadata.load import become_controller, load_image, prepare_tree
from penstock.model.endpoints import Endpoint
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from simulation.memory_store import MemorySession, MemoryZooKeeper

DELETION = DeleteTopicsRequest(topic_names=["orders"])
ALL_OPS = 1000


class Tree:
    def __init__(self) -> None:
        self.session = MemorySession(MemoryZooKeeper(asyncio.get_running_loop()))
        self.new_topic_id = 0

    async def begin(self) -> None:
        await self.session.reconnect()
        await prepare_tree(self.session, new_cluster_id="cluster")
        broker = BrokerRegistration(1, {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9091)})
        await self.session.create(znodes.broker_path(1), znodes.encode_broker(broker, now_ms=1))
        await become_controller(self.session, 1, now_ms=1)

    async def write(self, decision: Decision[Any], *, max_ops: int, pieces: int | None = None) -> int:
        """How many pieces there were; those after `pieces` are not written."""
        found = list(chunks(decision, max_ops=max_ops, max_bytes=10**6))
        for ops, _ in found[:pieces]:
            await self.session.multi(ops)
        return len(found)

    async def create(self, image: ClusterImage, partitions: int) -> Decision[Any]:
        self.new_topic_id += 1
        topic = CreatableTopic(name="orders", num_partitions=partitions, replication_factor=1)
        return create_topics(
            image,
            CreateTopicsRequest(topics=[topic]),
            defaults=TopicDefaults(),
            check_overrides=lambda overrides: None,
            new_topic_id=lambda: self.new_topic_id.to_bytes(16, "big"),
            marked=await marked_topics(self.session),
        )

    async def delete(self, image: ClusterImage) -> Decision[Any]:
        return delete_topics(
            image,
            DELETION,
            marked=await marked_topics(self.session),
            existing=await nodes_of(self.session, incomplete_topics(image, DELETION)),
        )

    async def left(self) -> list[str]:
        return [*await marked_topics(self.session), *await nodes_of(self.session, ["orders"])]


@pytest.mark.parametrize("max_ops", [4, ALL_OPS])
@pytest.mark.parametrize("written", range(8))
def test_a_deletion_that_was_cut_short_can_be_asked_for_again(written: int, max_ops: int) -> None:
    async def go() -> None:
        tree = Tree()
        await tree.begin()
        await tree.write(await tree.create(await load_image(tree.session), 5), max_ops=ALL_OPS)
        first = await tree.delete(await load_image(tree.session))
        cut = await tree.write(first, max_ops=4, pieces=written)
        again = await tree.delete(await load_image(tree.session))
        assert again.results[0].error_code == (0 if written < cut else 3)
        await tree.write(again, max_ops=max_ops)
        assert await tree.left() == []
        await tree.session.close()

    asyncio.run(go())


@pytest.mark.parametrize("written", range(1, 6))
def test_a_topic_that_was_half_made_can_be_deleted(written: int) -> None:
    async def go() -> None:
        tree = Tree()
        await tree.begin()
        made = await tree.create(await load_image(tree.session), 5)
        await tree.write(made, max_ops=4, pieces=written)
        await tree.write(await tree.delete(await load_image(tree.session)), max_ops=4)
        assert await tree.left() == []
        await tree.session.close()

    asyncio.run(go())


def test_the_topic_that_is_made_takes_a_mark_of_its_name_away() -> None:
    async def go() -> None:
        tree = Tree()
        await tree.begin()
        await tree.session.create(znodes.delete_topic_path("orders"))
        await tree.write(await tree.create(await load_image(tree.session), 5), max_ops=4, pieces=1)
        assert await marked_topics(tree.session) == []
        assert await tree.session.exists(znodes.topic_path("orders"))
        await tree.session.close()

    asyncio.run(go())
