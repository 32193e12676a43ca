"""Whatever happens to brokers, in whatever order, and wherever a controller dies: what the cluster relies on holds.

A run is a list of steps. Each is decided from the image, written to a tree in pieces of any size, perhaps not to the end (the
controller died: the next one reads the tree and completes it), and looked at.
"""

import asyncio
from collections.abc import Iterable
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.controller import balance, brokers, reassignments
from penstock.controller.decision import Decision, chunks
from penstock.controller.elections import elect_leaders
from penstock.controller.isr import alter_partition
from penstock.controller.partitions import create_partitions
from penstock.controller.shutdown import controlled_shutdown
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics, marked_for_deletion
from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER, BrokerRegistration, ClusterImage, PartitionRegistration
from penstock.metadata.load import become_controller, load_image, prepare_tree
from penstock.metadata.tree import MetadataTree
from penstock.model.endpoints import Endpoint
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from penstock.wire.messages.elect_leaders import ElectLeadersRequest
from simulation.memory_store import MemorySession, MemoryZooKeeper

IDS = (1, 2, 3, 4)
NAMES = ("a", "b")
ID_SET = st.sets(st.sampled_from(IDS), min_size=1)
NAME = st.sampled_from(NAMES)
PLACE = st.sampled_from([("a", 0), ("a", 0), ("a", 1), ("a", 3), ("b", 0)])
STEP = st.one_of(
    st.tuples(st.just("create"), st.tuples(NAME, st.integers(1, 4), st.integers(1, 3))),
    st.tuples(st.just("delete"), NAME),
    st.tuples(st.just("grow"), NAME),
    st.tuples(st.sampled_from(["lose", "lose", "arrive", "restart"]), ID_SET),
    st.tuples(st.just("shut down"), st.sampled_from(IDS)),
    st.tuples(st.just("alter"), st.tuples(PLACE, ID_SET, st.sampled_from([-1, 0, 0, 0, 0, 1]))),
    st.tuples(st.just("catch up"), PLACE),
    st.tuples(st.just("reassign"), st.tuples(PLACE, st.lists(st.sampled_from(IDS), max_size=3, unique=True))),
    st.tuples(st.just("reassign"), st.tuples(PLACE, st.lists(st.sampled_from(IDS), max_size=1))),
    st.tuples(st.just("elect"), st.integers(0, 1)),
    st.tuples(st.just("balance"), st.integers(0, 50)),
)
# How many ops a piece may have, and after how many pieces the controller dies, if so.
WRITING = st.tuples(st.integers(1, 30), st.sampled_from([None, None, None, None, 0, 1, 3]))
STEPS = st.lists(st.tuples(STEP, WRITING), min_size=5, max_size=25)

Leaders = dict[tuple[bytes, int, int], int]


class Cluster:
    def __init__(self, tree: MetadataTree, *, unclean: bool) -> None:
        self.tree = tree
        self.unclean = unclean
        self.image = ClusterImage()
        self.shutting_down: set[int] = set()
        self.leaders: Leaders = {}
        self.new_topic_id = count(1)

    # --- brokers in the tree

    async def register(self, ids: Iterable[int]) -> list[BrokerRegistration]:
        found = []
        for id in ids:
            endpoint = Endpoint("PLAINTEXT", "localhost", 9090 + id)
            broker = BrokerRegistration(id, {"PLAINTEXT": endpoint})
            await self.tree.create(znodes.broker_path(id), znodes.encode_broker(broker, now_ms=1))
            node = await self.tree.get(znodes.broker_path(id))
            found.append(broker._replace(epoch=node.created))
        return found

    async def unregister(self, ids: Iterable[int]) -> None:
        for id in ids:
            await self.tree.delete(znodes.broker_path(id))

    # --- a controller begins

    async def begin(self) -> None:
        if await self.tree.exists(znodes.CONTROLLER):
            await self.tree.delete(znodes.CONTROLLER)
        await become_controller(self.tree, 1, now_ms=1)
        self.shutting_down.clear()
        fresh = await load_image(self.tree)
        self.image.replace_with(fresh)
        assert self.image.differences(fresh) == []
        existing = (await self.tree.subtree(znodes.TOPICS)).keys()
        marked = await self.tree.children(znodes.DELETE_TOPICS)
        await self.write(marked_for_deletion(self.image, marked, existing=existing))
        await self.write(brokers.partitions_without_state(self.image, existing=existing))
        missing = brokers.missing_brokers(self.image)
        await self.write(brokers.broker_lost(self.image, missing, is_unclean_allowed=self.is_unclean_allowed))
        here = self.image.brokers.keys()
        await self.write(brokers.broker_arrived(self.image, here, is_unclean_allowed=self.is_unclean_allowed))
        await self.write(reassignments.progress(self.image, reassignments.reassigning(self.image)))

    def is_unclean_allowed(self, name: str) -> bool:
        return self.unclean

    async def write(
        self, decision: Decision[Any], max_ops: int = 1000, dies_after: int | None = None
    ) -> bool:
        """Whether the controller lived to the end of it."""
        for number, (ops, changes) in enumerate(chunks(decision, max_ops=max_ops, max_bytes=10**6)):
            if number == dies_after:
                return False
            await self.tree.multi(ops)
            self.image.apply_all(changes)
        return dies_after is None

    # --- steps

    async def take(self, kind: str, what: Any, writing: tuple[int, int | None]) -> None:
        before = self.partitions()
        async for decision in self.decisions(kind, what):
            if not await self.write(decision, *writing):
                await self.begin()
                break
            may_grow = kind in ("alter", "catch up")
            self.check(before, may_grow=may_grow, may_be_unclean=self.unclean or (kind, what) == ("elect", 1))
            before = self.partitions()
        self.check(before, may_grow=True, may_be_unclean=True)
        assert self.image.differences(await load_image(self.tree)) == []

    async def decisions(self, kind: str, what: Any) -> Any:
        image = self.image
        if kind == "create":
            name, num_partitions, factor = what
            topic = CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=factor)
            yield create_topics(
                image,
                CreateTopicsRequest(topics=[topic]),
                defaults=TopicDefaults(),
                check_overrides=lambda overrides: None,
                new_topic_id=lambda: next(self.new_topic_id).to_bytes(16, "big"),
                start_index=next(self.new_topic_id),
            )
        elif kind == "delete":
            yield delete_topics(image, DeleteTopicsRequest(topic_names=[what]))
        elif kind == "grow":
            wanted = len(image.topics[what].partitions) + 1 if what in image.topics else 1
            asked = CreatePartitionsTopic(name=what, count=wanted)
            yield create_partitions(image, CreatePartitionsRequest(topics=[asked]))
        elif kind in ("lose", "restart"):
            lost = what & image.brokers.keys()
            await self.unregister(lost)
            for id in lost:
                image.remove_broker(id)
            self.shutting_down -= lost
            yield self.lost(lost)
            if kind == "restart":
                yield await self.arrived(lost)
        elif kind == "arrive":
            yield await self.arrived(what - image.brokers.keys())
        elif kind == "shut down":
            if what in image.brokers:
                yield controlled_shutdown(image, what, self.shutting_down)
                self.shutting_down.add(what)
        elif kind == "elect":
            request = ElectLeadersRequest(election_type=what, topic_partitions=None)
            yield elect_leaders(image, request, leaving=self.shutting_down)
        elif kind == "balance":
            leaving = self.shutting_down
            places = balance.imbalanced(image, threshold_percent=what, leaving=leaving)
            yield balance.preferred_leaders(image, places, leaving=leaving)
        elif kind == "catch up":
            async for decision in self.altered(what, set(IDS) & image.brokers.keys() - self.shutting_down, 0):
                yield decision
        elif kind == "alter":
            async for decision in self.altered(*what):
                yield decision
        else:
            (name, index), replicas = what
            move = ReassignablePartition(partition_index=index, replicas=replicas or None)
            request = AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=name, partitions=[move])]
            )
            yield reassignments.alter(image, request, leaving=self.shutting_down)

    def lost(self, ids: set[int]) -> Decision[None]:
        return brokers.broker_lost(
            self.image, ids, is_unclean_allowed=self.is_unclean_allowed, leaving=self.shutting_down
        )

    async def arrived(self, ids: set[int]) -> Decision[None]:
        for broker in await self.register(ids):
            self.image.add_broker(broker)
        return brokers.broker_arrived(
            self.image, ids, is_unclean_allowed=self.is_unclean_allowed, leaving=self.shutting_down
        )

    async def altered(self, place: tuple[str, int], isr: set[int], epoch_shift: int) -> Any:
        """The leader asks for this ISR, as far as its replicas go; mostly with the epochs that are."""
        image = self.image
        partition = image.partition(*place)
        if partition is None or partition.leader not in image.brokers:
            return
        epochs = {broker.id: broker.epoch for broker in image.brokers.values()}
        wanted = (isr & set(partition.replicas)) | {partition.leader}
        asked = RequestPartitionData(
            partition_index=place[1],
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch + epoch_shift,
            new_isr_with_epochs=[BrokerState(broker_id=id, broker_epoch=epochs.get(id, 5)) for id in wanted],
        )
        topic = RequestTopicData(topic_id=image.topics[place[0]].topic_id, partitions=[asked])
        request = AlterPartitionRequest(
            broker_id=partition.leader, broker_epoch=epochs[partition.leader], topics=[topic]
        )
        yield alter_partition(image, request, broker_epochs=epochs, shutting_down=self.shutting_down)
        yield reassignments.progress(image, [place], leaving=self.shutting_down)

    # --- what must hold

    def partitions(self) -> dict[tuple[bytes, int], PartitionRegistration]:
        return {
            (topic.topic_id, index): partition
            for topic in self.image.topics.values()
            for index, partition in enumerate(topic.partitions)
        }

    def check(
        self, before: dict[tuple[bytes, int], PartitionRegistration], *, may_grow: bool, may_be_unclean: bool
    ) -> None:
        for (topic_id, index), partition in self.partitions().items():
            check_partition(partition)
            if partition.leader != NO_LEADER:
                assert self.image.brokers.keys() >= set(partition.isr)
                key = topic_id, index, partition.leader_epoch
                assert self.leaders.setdefault(key, partition.leader) == partition.leader
            else:
                able = self.image.brokers.keys() - self.shutting_down
                assert able.isdisjoint(partition.isr)
            previous = before.get((topic_id, index))
            if previous is None:
                continue
            assert partition.leader_epoch >= previous.leader_epoch
            assert partition.partition_epoch >= previous.partition_epoch
            if partition != previous:
                assert partition.partition_epoch > previous.partition_epoch
            if partition.leader != previous.leader:
                assert partition.leader_epoch > previous.leader_epoch
                assert may_be_unclean or partition.leader in (NO_LEADER, *previous.isr)
            assert may_grow or may_be_unclean or set(partition.isr) <= set(previous.isr)


def check_partition(partition: PartitionRegistration) -> None:
    replicas, isr = set(partition.replicas), set(partition.isr)
    assert partition.partition_epoch >= 0
    assert len(replicas) == len(partition.replicas) > 0
    assert len(isr) == len(partition.isr) > 0
    assert isr <= replicas
    assert partition.leader == NO_LEADER or partition.leader in isr
    adding, removing = set(partition.adding), set(partition.removing)
    assert adding | removing <= replicas
    assert adding.isdisjoint(removing)
    assert replicas > removing


@settings(max_examples=200)
@given(st.booleans(), STEPS)
def test_what_the_cluster_relies_on_holds_after_any_steps(
    unclean: bool, steps: list[tuple[tuple[str, Any], tuple[int, int | None]]]
) -> None:
    async def go() -> None:
        session = MemorySession(MemoryZooKeeper(asyncio.get_running_loop()))
        await session.reconnect()
        await prepare_tree(session, new_cluster_id="cluster")
        found = Cluster(session, unclean=unclean)
        await found.register(IDS)
        await found.begin()
        for topic in (("a", 3, 3), ("b", 1, 2)):
            await found.take("create", topic, (1000, None))
        for (kind, what), writing in steps:
            await found.take(kind, what, writing)
        await session.close()

    asyncio.run(go())
