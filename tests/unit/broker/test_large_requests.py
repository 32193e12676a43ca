"""Large requests: others are served meanwhile, what a client sends is handled in its order, and there is a bound."""

import asyncio
from pathlib import Path

import pytest

from penstock.broker.requests.large import LARGE_BYTES, MAX_ELEMENTS, count_elements
from penstock.model.errors import ErrorCode
from penstock.wire import codec
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.unit.broker.lone_broker import PATIENCE_S, lone_broker


def deletion_of(count: int) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=index) for index in range(count)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="nothing", partitions=partitions)])


def test_others_are_served_while_a_large_request_is_read_and_handled(tmp_path: Path) -> None:
    async def run() -> int:
        async with (
            lone_broker(tmp_path) as broker,
            await broker.client() as large,
            await broker.client() as small,
        ):
            request = deletion_of(50_000)
            large.send(request, 2)
            answering = asyncio.create_task(large.receive(request, 2))
            pings = 0
            while not answering.done():
                assert (await small.ask(ApiVersionsRequest(), 0)).error_code == 0
                pings += 1
            (topic,) = answering.result().topics
            assert [each.partition_index for each in topic.partitions] == list(range(50_000))
            codes = {each.error_code for each in topic.partitions}
            assert codes == {int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
            return pings

    assert asyncio.run(run()) > 20


def test_requests_behind_a_large_one_are_handled_after_it(tmp_path: Path) -> None:
    count = 6
    offsets = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="m" * 4000)
        for index in range(count)
    ]
    topic = OffsetCommitRequestTopic(name="orders", partitions=offsets)
    commit = OffsetCommitRequest(group_id="readers", topics=[topic])
    assert len(codec.encode(commit, 7)) > LARGE_BYTES
    wanted = OffsetFetchRequestTopic(name="orders", partition_indexes=list(range(count)))
    fetch = OffsetFetchRequest(group_id="readers", topics=[wanted])

    async def run() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            created = CreatableTopic(name="orders", num_partitions=count, replication_factor=1)
            await client.ask(CreateTopicsRequest(topics=[created]), 7)
            await broker.node.groups.ensure_topic()
            async with asyncio.timeout(PATIENCE_S):
                while (await client.ask(fetch, 5)).error_code:
                    await asyncio.sleep(0.01)
            client.send(commit, 7)
            client.send(fetch, 5)
            committed = await client.receive(commit, 7)
            assert {each.error_code for topic in committed.topics for each in topic.partitions} == {0}
            found = await client.receive(fetch, 5)
            assert {each.committed_offset for topic in found.topics for each in topic.partitions} == {7}

    asyncio.run(run())


def test_a_request_that_lists_too_much_ends_its_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            with pytest.raises(asyncio.IncompleteReadError):
                await client.ask(deletion_of(MAX_ELEMENTS + 1), 2)
            async with await broker.client() as other:
                assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0

    asyncio.run(run())


def test_what_is_listed_is_counted_through_all_levels() -> None:
    assert count_elements(deletion_of(5)) == 6
