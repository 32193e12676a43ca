import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.metadata import znodes
from penstock.metadata.image import NO_STATE, BrokerRegistration, PartitionRegistration, TopicCreated
from penstock.metadata.load import (
    become_controller,
    give_topic_id,
    load_epochs_seen,
    load_image,
    prepare_tree,
)
from penstock.metadata.tree import BadVersion, Create, MetadataTree, NodeExists, TreeOp
from penstock.model.endpoints import Endpoint
from penstock.model.tokens import DelegationToken
from penstock.stores.embedded import open_store


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[MetadataTree]:
    store = open_store(str(tmp_path))
    yield store
    asyncio.run(store.close())


def test_an_empty_tree_is_an_empty_cluster(tree: MetadataTree) -> None:
    image = asyncio.run(load_image(tree))
    assert (image.cluster_id, image.controller_id, image.topics, image.brokers) == ("", -1, {}, {})


def test_a_cluster_keeps_its_first_id(tree: MetadataTree) -> None:
    async def go() -> None:
        assert await prepare_tree(tree, new_cluster_id="first") == "first"
        assert await prepare_tree(tree, new_cluster_id="second") == "first"
        assert (await load_image(tree)).cluster_id == "first"
        assert await tree.exists("/config/changes")

    asyncio.run(go())


def test_a_tree_that_was_wiped_goes_on_with_the_epochs_that_brokers_know(tree: MetadataTree) -> None:
    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="id")
        assert await become_controller(tree, 1, now_ms=1, known_epoch=7) == (8, 0)
        await tree.delete(znodes.CONTROLLER)
        assert await become_controller(tree, 2, now_ms=1, known_epoch=7) == (9, 1)
        await tree.delete(znodes.CONTROLLER)
        assert await become_controller(tree, 1, now_ms=1, known_epoch=20) == (21, 2)

    asyncio.run(go())


def test_each_controller_has_a_new_epoch_and_there_is_one_at_a_time(tree: MetadataTree) -> None:
    async def go() -> None:
        assert await become_controller(tree, 1, now_ms=1) == (1, 0)
        with pytest.raises(NodeExists):
            await become_controller(tree, 2, now_ms=1)
        await tree.delete(znodes.CONTROLLER)
        assert await become_controller(tree, 2, now_ms=1) == (2, 1)
        image = await load_image(tree)
        assert (image.controller_id, image.controller_epoch) == (2, 2)

    asyncio.run(go())


def test_a_partition_that_kafka_has_not_yet_elected_a_leader_for_has_none(tree: MetadataTree) -> None:
    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="id")
        await tree.create(
            "/brokers/topics/orders",
            b'{"partitions":{"0":[1,2]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","version":3}',
        )
        image = await load_image(tree)
        assert image.partition("orders", 0) == PartitionRegistration((1, 2), (), -1, 0, NO_STATE)

    asyncio.run(go())


def test_the_controller_gives_topics_of_an_old_kafka_ids_of_their_own(tree: MetadataTree) -> None:
    """Without one they could not be told apart; until they have one, other brokers leave them out."""

    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="id")
        won = await become_controller(tree, 1, now_ms=1)
        state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":3,"isr":[2]}'
        for name in ("orders", "payments"):
            assignment = (
                b'{"version":2,"partitions":{"0":[2,3]},"adding_replicas":{"0":[3]},"removing_replicas":{}}'
            )
            path = znodes.topic_path(name)
            await tree.multi(
                [
                    Create(path, assignment),
                    *(Create(f"{path}{below}") for below in ("/partitions", "/partitions/0")),
                    Create(f"{path}/partitions/0/state", state),
                ]
            )
        assert (await load_image(tree)).topics == {}

        ids = iter(bytes([number] * 16) for number in (1, 2, 3))

        async def give_id(topic: TopicCreated) -> TopicCreated:
            return await give_topic_id(tree, won, topic, next(ids))

        image = await load_image(tree, give_id=give_id)
        assert {image.topic_id("orders"), image.topic_id("payments")} == {bytes([1] * 16), bytes([2] * 16)}
        assert image.partition("orders", 0) == PartitionRegistration((2, 3), (2,), 2, 3, 0, (3,))
        assert image.topic_with_id(image.topic_id("payments")) is image.topic("payments")
        assert image.differences(await load_image(tree)) == []

        await tree.set("/brokers/topics/orders", assignment)
        await tree.delete(znodes.CONTROLLER)
        await become_controller(tree, 2, now_ms=1)
        with pytest.raises(BadVersion):
            await load_image(tree, give_id=give_id)

    asyncio.run(go())


def test_a_node_that_cannot_be_read_is_named(tree: MetadataTree) -> None:
    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="id")
        await tree.multi([Create("/config/topics/orders", b"nonsense")])
        with pytest.raises(znodes.BadNode, match="/config/topics/orders"):
            await load_image(tree)

    asyncio.run(go())


def test_of_brokers_that_prepare_at_once_one_names_the_cluster(tree: MetadataTree) -> None:
    class Slow:
        """Lets the others look before it writes, as a store across a network does."""

        def __getattr__(self, name: str) -> object:
            return getattr(tree, name)

        async def multi(self, ops: list[TreeOp]) -> object:
            await asyncio.sleep(0)
            return await tree.multi(ops)

    async def go() -> None:
        slow: Any = Slow()
        ids = await asyncio.gather(*(prepare_tree(slow, new_cluster_id=f"id-{n}") for n in range(3)))
        assert set(ids) == {znodes.decode_cluster_id((await tree.get(znodes.CLUSTER_ID)).data)}

    asyncio.run(go())


def test_a_broker_that_registers_again_has_a_greater_epoch(tree: MetadataTree) -> None:
    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="id")
        broker = BrokerRegistration(1, {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092)})
        epochs = []
        for _ in range(2):
            await tree.create(znodes.broker_path(1), znodes.encode_broker(broker, now_ms=1))
            epochs.append((await load_image(tree)).brokers[1].epoch)
            await tree.delete(znodes.broker_path(1))
        assert epochs[0] < epochs[1]

    asyncio.run(go())


def test_the_epochs_that_a_controller_has_seen_are_kept(tree: MetadataTree) -> None:
    seen = znodes.EpochsSeen({2: 70, 1: 9}, {1: 4, 2: 70})

    async def go() -> None:
        assert await load_epochs_seen(tree) == znodes.EpochsSeen()
        await prepare_tree(tree, new_cluster_id="id")
        assert await load_epochs_seen(tree) == znodes.EpochsSeen()
        await tree.set(znodes.BROKER_EPOCHS, znodes.encode_broker_epochs(seen))
        assert await load_epochs_seen(tree) == seen

    asyncio.run(go())


def test_a_token_that_cannot_be_read_is_left_out_and_keeps_nobody_from_the_rest(tree: MetadataTree) -> None:
    async def go() -> None:
        await prepare_tree(tree, new_cluster_id="first")
        token = DelegationToken("good", "User:ana", "User:ana", (), issued_ms=0, max_ms=2, expires_ms=1)
        await tree.create(znodes.token_path("bad"), b"{")
        await tree.create(znodes.token_path("good"), znodes.encode_token(token))
        told: list[str] = []
        assert (await load_image(tree, report=told.append)).tokens == {"good": token}
        assert [znodes.token_path("bad") in text for text in told] == [True]

    asyncio.run(go())
