"""Topics and access rules: no detour makes or deletes one that the client may not."""

import asyncio
from pathlib import Path
from typing import Any

from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_partitions import PenstockRestored as RestoredPartitions
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    PenstockRestored,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.broker.lone_broker import LoneBroker, lone_broker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NO_ID = bytes(16)


def guarded(tmp_path: Path) -> Any:
    return lone_broker(tmp_path, **{"authorizer.class.name": STANDARD})


def allow(broker: LoneBroker, *operations: Operation) -> None:
    """On all topics, for everybody."""
    rules = [Rule("User:*", "*", operation, Permission.ALLOW) for operation in operations]
    pattern = Pattern(ResourceType.TOPIC, "*", PatternType.LITERAL)
    broker.node.authorizer.set_rules(pattern, rules)


def test_a_name_beside_an_id_makes_no_topic(tmp_path: Path) -> None:
    """Versions 10 and on have room for both. The rules are asked about the id."""

    async def ask() -> None:
        async with guarded(tmp_path) as broker, await broker.client() as client:
            wanted = MetadataRequestTopic(topic_id=b"7" * 16, name="mine")
            answer = await client.ask(MetadataRequest(topics=[wanted], allow_auto_topic_creation=True), 12)
            assert broker.node.image.topic("mine") is None
            assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]

    asyncio.run(ask())


def test_a_topic_that_is_made_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """Who may not delete it asks before it is there, and the request is handled when it is."""

    async def ask() -> None:
        async with guarded(tmp_path) as broker, await broker.client() as owner, await broker.client() as eve:
            allow(broker, Operation.DESCRIBE, Operation.CREATE)
            new = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
            creation = CreateTopicsRequest(topics=[new])
            deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders", topic_id=NO_ID)])
            owner.send(creation, 7)
            eve.send(deletion, 6)
            created = await owner.receive(creation, 7)
            assert [topic.error_code for topic in created.topics] == [0]
            deleted = await eve.receive(deletion, 6)
            assert deleted.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert broker.node.image.topic("orders") is not None

    asyncio.run(ask())


def test_logs_that_were_set_aside_come_back_for_who_may_alter_the_cluster(tmp_path: Path) -> None:
    """Under whatever name they are asked for: who may make topics of her own could read another's records there."""

    async def ask() -> None:
        async with guarded(tmp_path) as broker, await broker.client() as eve:
            allow(broker, Operation.CREATE, Operation.ALTER, Operation.DESCRIBE)
            restored = [PenstockRestored(topic_id=b"7" * 16, leader_epoch=5)]
            placed = CreatableReplicaAssignment(partition_index=0, broker_ids=[broker.node.broker_id])
            mine = CreatableTopic(
                name="mine",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[placed],
                penstock_restored=restored,
            )
            created = await eve.ask(CreateTopicsRequest(topics=[mine]), 7)
            assert [topic.error_code for topic in created.topics] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
            assert broker.node.image.topic("mine") is None
            more = CreatePartitionsTopic(
                name="mine",
                count=2,
                assignments=[CreatePartitionsAssignment(broker_ids=[broker.node.broker_id])],
                penstock_restored=[RestoredPartitions(topic_id=b"7" * 16, leader_epoch=5)],
            )
            grown = await eve.ask(CreatePartitionsRequest(topics=[more]), 3)
            assert [topic.error_code for topic in grown.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    asyncio.run(ask())
