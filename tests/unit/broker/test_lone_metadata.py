"""A broker without ZooKeeper changes its metadata off the loop, as the law of this room wants, and keeps it."""

import asyncio
from pathlib import Path

from penstock.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.broker.lone_broker import lone_broker

TOPIC = 2


def test_metadata_changes_off_the_loop_and_lasts(tmp_path: Path) -> None:
    async def first() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            wanted = CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
            created = await client.ask(CreateTopicsRequest(topics=[wanted]), 7)
            assert [topic.error_code for topic in created.topics] == [0]
            resource = AlterConfigsResource(
                resource_type=TOPIC,
                resource_name="orders",
                configs=[AlterableConfig(name="retention.ms", value="1000")],
            )
            altered = await client.ask(AlterConfigsRequest(resources=[resource]), 2)
            assert [each.error_code for each in altered.responses] == [0]
            producer = await client.ask(InitProducerIdRequest(transactional_id=None), 4)
            assert producer.error_code == 0

    async def second() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            found = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
            assert len(found.topics[0].partitions) == 3
            assert broker.node.partitions.get("orders", 0).log.options.retention_ms == 1000

    asyncio.run(first())
    asyncio.run(second())


def test_changes_that_are_asked_for_together_are_all_made(tmp_path: Path) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path) as broker:
            names = [f"topic-{number}" for number in range(20)]
            made = await asyncio.gather(
                *(broker.node.topics.auto_create(name, allowed=True) for name in [*names, *names])
            )
            assert [topic.name for topic in made] == names * 2
            assert sorted(await broker.node.tree.children("/brokers/topics")) == sorted(names)

    asyncio.run(run())
