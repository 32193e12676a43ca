"""Whatever is decided, the image kept in memory is the image that a restarted broker reads from the tree."""

import asyncio
import tempfile
from collections.abc import Mapping
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.option import Option
from penstock.config.topic_options import topic_option
from penstock.controller.configs import incremental_alter_configs
from penstock.controller.decision import Decision
from penstock.controller.elections import elect_leaders
from penstock.controller.partitions import create_partitions
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics
from penstock.metadata import znodes
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionChanged
from penstock.metadata.load import become_controller, load_image, prepare_tree
from penstock.metadata.tree import MetadataTree, Set
from penstock.model.endpoints import Endpoint
from penstock.stores.embedded import open_store
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.elect_leaders import ElectLeadersRequest
from penstock.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

NAMES = ["a", "a.b", "a_b", "a-b", "a/b"]
NAME = st.sampled_from(NAMES)
TOPIC = st.tuples(NAME, st.integers(-1, 4), st.integers(-1, 3), st.sampled_from([{}, {"retention.ms": "1"}]))
STEP = st.one_of(
    st.tuples(st.just("create"), st.lists(TOPIC, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.lists(st.tuples(NAME, st.booleans()), min_size=1, max_size=3)),
    st.tuples(st.just("grow"), st.lists(st.tuples(NAME, st.integers(0, 6)), min_size=1, max_size=2)),
    st.tuples(
        st.just("configure"),
        st.tuples(st.sampled_from([(2, "a"), (2, "a.b"), (4, "1"), (4, ""), (32, "g/1")]), st.integers(0, 3)),
    ),
    st.tuples(st.just("elect"), st.integers(0, 1)),
    st.tuples(st.just("move leaders"), st.just(None)),
    st.tuples(st.just("restart"), st.just(None)),
)
new_id = count(1)


class AllowAll:
    def check(self, entity_type: str, entity_name: str, overrides: Mapping[str, str]) -> None:
        return None

    def option(self, entity_type: str, name: str) -> Option | None:
        return topic_option(name)


async def start(tree: MetadataTree) -> ClusterImage:
    await prepare_tree(tree, new_cluster_id="cluster")
    await become_controller(tree, 1, now_ms=1)
    for id in (1, 2):
        broker = BrokerRegistration(
            id, {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9090 + id)}, f"rack-{id}"
        )
        node = znodes.encode_broker(broker, now_ms=1)
        await tree.create(znodes.broker_path(id), node, ephemeral=True)
    return await load_image(tree)


def decide(image: ClusterImage, kind: str, what: object) -> Decision[object]:
    decision: object
    if kind == "create":
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=factor,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name, partitions, factor, configs in what  # type: ignore[attr-defined]
        ]
        decision = create_topics(
            image,
            CreateTopicsRequest(topics=topics),
            defaults=TopicDefaults(2, 2),
            check_overrides=lambda overrides: None,
            new_topic_id=lambda: next(new_id).to_bytes(16, "big"),
            start_index=next(new_id),
        )
    elif kind == "delete":
        states = [
            DeleteTopicState(topic_id=image.topic_id(name)) if by_id else DeleteTopicState(name=name)
            for name, by_id in what  # type: ignore[attr-defined]
        ]
        decision = delete_topics(image, DeleteTopicsRequest(topics=states))
    elif kind == "grow":
        wanted = [CreatePartitionsTopic(name=n, count=c) for n, c in what]  # type: ignore[attr-defined]
        decision = create_partitions(image, CreatePartitionsRequest(topics=wanted))
    elif kind == "configure":
        (resource_type, name), operation = what  # type: ignore[misc]
        config = AlterableConfig(name="cleanup.policy", config_operation=operation, value="compact")
        resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[config])
        decision = incremental_alter_configs(image, [resource], rules=AllowAll(), validate_only=False)
    elif kind == "elect":
        decision = elect_leaders(image, ElectLeadersRequest(election_type=what, topic_partitions=None))
    else:
        decision = move_leaders(image)
    return decision  # type: ignore[return-value]


def move_leaders(image: ClusterImage) -> Decision[object]:
    """What a failing broker will do later: gives elections something to do."""
    decision: Decision[object] = Decision([], [], [])
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            moved = partition._replace(
                leader=partition.replicas[-1], partition_epoch=partition.partition_epoch + 1
            )
            state = znodes.encode_partition_state(moved, controller_epoch=image.controller_epoch)
            path = znodes.partition_state_path(topic.name, index)
            decision.ops.append(Set(path, state, partition.partition_epoch))
            decision.changes.append(PartitionChanged(topic.name, index, moved))
    return decision


@settings(max_examples=40)
@given(st.lists(STEP, max_size=12))
def test_the_image_kept_is_the_image_read_again(steps: list[tuple[str, object]]) -> None:
    async def go(directory: str) -> None:
        tree = open_store(directory)
        image = await start(tree)
        for kind, what in steps:
            if kind == "restart":
                await tree.close()
                tree = open_store(directory)
                image = await start(tree)
                continue
            decision = decide(image, kind, what)
            await tree.multi(decision.ops)
            image.apply_all(decision.changes)
            assert image.differences(await load_image(tree)) == []
        await tree.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(directory))
