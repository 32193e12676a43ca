"""Transactions and access rules: nobody adds to one of a transactional id that it may not write as."""

import asyncio
from pathlib import Path

from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.model.errors import ErrorCode
from penstock.records.batch import MAGIC_AT
from penstock.records.build import build_batch
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.broker.lone_broker import LoneBroker, lone_broker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ADDS_PARTITIONS = 12


def allow(broker: LoneBroker, resource_type: ResourceType, operation: Operation) -> None:
    """On all of the type, for everybody, in place of what was allowed."""
    rule = Rule("User:*", "*", operation, Permission.ALLOW)
    broker.node.authorizer.set_rules(Pattern(resource_type, "*", PatternType.LITERAL), [rule])


def test_a_batch_that_cannot_be_read_begins_no_transaction_of_somebody_else(tmp_path: Path) -> None:
    """Its format is not one in which a batch can be part of a transaction, but its flags say that it is."""

    async def ask() -> None:
        options = {"authorizer.class.name": STANDARD, "transaction.state.log.num.partitions": "1"}
        async with lone_broker(tmp_path, **options) as broker, await broker.client() as client:
            allow(broker, ResourceType.TOPIC, Operation.ALL)
            allow(broker, ResourceType.TRANSACTIONAL_ID, Operation.ALL)
            new = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
            await client.ask(CreateTopicsRequest(topics=[new]), 7)
            owner = await client.ask(
                InitProducerIdRequest(transactional_id="theirs", transaction_timeout_ms=60_000), 5
            )
            assert owner.error_code == 0
            allow(broker, ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE)
            batch = bytearray(
                build_batch(
                    [(None, b"v", (), 1_700_000_000_000)],
                    producer_id=owner.producer_id,
                    producer_epoch=owner.producer_epoch,
                    base_sequence=0,
                    transactional=True,
                )
            )
            batch[MAGIC_AT] = 1
            partition = PartitionProduceData(index=0, records=bytes(batch))
            produced = await client.ask(
                ProduceRequest(
                    transactional_id="theirs",
                    acks=-1,
                    timeout_ms=60_000,
                    topic_data=[TopicProduceData(name="orders", partition_data=[partition])],
                ),
                ADDS_PARTITIONS,
            )
            assert produced.responses[0].partition_responses[0].error_code != ErrorCode.NONE
            found = await client.ask(DescribeTransactionsRequest(transactional_ids=["theirs"]), 0)
            assert [(each.transaction_state, each.topics) for each in found.transaction_states] == [
                ("Empty", [])
            ]

    asyncio.run(ask())
