"""Clients over their quotas are told how long to wait, and nothing more is read from them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.handlers import fetch as fetch_handler
from penstock.broker.quotas import client_quotas
from penstock.broker.quotas.client_quotas import ClientQuotas, forget_oldest
from penstock.net.connection import Connection
from penstock.records.build import build_batch
from penstock.security.principals import ANONYMOUS
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.broker.lone_broker import Client, LoneBroker, lone_broker

EXCEEDED = 89


def scenario(directory: Path, story: Callable[[LoneBroker, Client, Client], Awaitable[None]]) -> None:
    """With a client whose connection may be muted, and one for the administrator, who has no quota (see `limit`)."""

    async def run() -> None:
        async with (
            lone_broker(directory) as broker,
            await broker.client() as admin,
            await broker.client() as client,
        ):
            await client.ask(ApiVersionsRequest(), 0)
            made = await admin.ask(
                CreateTopicsRequest(
                    topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
                ),
                7,
            )
            assert not made.topics[0].error_code
            await story(broker, admin, client)

    asyncio.run(run())


async def limit(broker: LoneBroker, **values: float | None) -> None:
    """Of everybody: by a request of its own, as the limits hold for it as well."""
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()]
    entry = RequestEntryData(entity=[EntityData(entity_type="user", entity_name=None)], ops=ops)
    async with await broker.client() as client:
        answer = await client.ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert not answer.entries[0].error_code


def muted(broker: LoneBroker) -> list[Connection]:
    return [each for each in broker.listener.connections if each.is_muted]


def unmute(broker: LoneBroker) -> None:
    for connection in muted(broker):
        connection._muted.cancel()  # type: ignore[union-attr]
        connection._unmute()


def records(size: int) -> ProduceRequest:
    data = PartitionProduceData(
        index=0, records=bytes(build_batch([(None, b"x" * size, (), 1_700_000_000_000)]))
    )
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )


def fetch(**more: Any) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=0,
        topics=[FetchTopic(topic="t", partitions=[wanted])], **more,
    )  # fmt: skip


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_a_producer_over_its_quota_is_told_and_muted(tmp_path: Path, version: int) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        assert (await client.ask(records(100), version)).throttle_time_ms == 0
        await limit(broker, producer_byte_rate=1000.0)
        answer = await client.ask(records(10_500), version)
        assert not answer.responses[0].partition_responses[0].error_code
        # (10,500 bytes and the head of the request - 10,000) / 1,000 per second
        assert 500 < answer.throttle_time_ms < 1000
        assert len(muted(broker)) == 1
        client.send(records(10), version)
        for _ in range(20):
            assert (await admin.ask(ApiVersionsRequest(), 0)).error_code == 0
        assert broker.node.partitions.topic("t").partition(0).log.end_offset == 2  # type: ignore[union-attr]
        unmute(broker)
        assert (await client.receive(records(10), version)).throttle_time_ms > 0

    scenario(tmp_path, story)


def test_a_producer_that_waits_for_no_answer_is_muted_as_well(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        await limit(broker, producer_byte_rate=1000.0)
        request = records(15_000)
        request.acks = 0
        client.send(request, 9)
        while not muted(broker):
            await admin.ask(ApiVersionsRequest(), 0)
        assert broker.node.partitions.topic("t").partition(0).log.end_offset == 1  # type: ignore[union-attr]

    scenario(tmp_path, story)


@pytest.mark.parametrize("version", [4, 7, 12])
def test_a_consumer_over_its_quota_gets_nothing_until_it_has_waited(tmp_path: Path, version: int) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        await client.ask(records(6_000), 9)
        await limit(broker, consumer_byte_rate=1000.0)
        first = await client.ask(fetch(), version)
        assert first.throttle_time_ms == 0
        assert first.responses[0].partitions[0].records
        second = await client.ask(fetch(), version)
        assert second.throttle_time_ms > 0
        assert (second.responses, second.session_id, second.error_code) == ([], 0, 0)
        assert len(muted(broker)) == 1
        unmute(broker)
        # What it did not get was not counted: it waits as long as before.
        third = await client.ask(fetch(), version)
        assert 0 < third.throttle_time_ms <= second.throttle_time_ms
        await limit(broker, consumer_byte_rate=None)
        unmute(broker)
        assert (await client.ask(fetch(), version)).responses[0].partitions[0].records

    scenario(tmp_path, story)


def test_a_batch_that_is_larger_than_the_quota_reaches_its_consumer(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        await client.ask(records(50_000), 9)
        await limit(broker, consumer_byte_rate=1000.0)
        assert len((await client.ask(fetch(), 12)).responses[0].partitions[0].records) > 50_000
        assert (await client.ask(fetch(), 12)).throttle_time_ms > 0

    scenario(tmp_path, story)


def test_time_counts_for_every_request(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        topics = [MetadataRequestTopic(name="t")]
        assert (await client.ask(MetadataRequest(topics=topics), 9)).throttle_time_ms == 0
        await limit(broker, request_percentage=1e-6)
        assert 0 < (await client.ask(MetadataRequest(topics=topics), 9)).throttle_time_ms <= 1000
        assert muted(broker)
        unmute(broker)
        assert 0 < (await client.ask(records(10), 9)).throttle_time_ms <= 1000
        unmute(broker)
        answer = await client.ask(fetch(), 12)
        assert 0 < answer.throttle_time_ms <= 1000
        assert answer.responses == []

    scenario(tmp_path, story)


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
    )


def test_changes_of_topics_are_refused_until_the_bucket_is_full_again(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        await limit(broker, controller_mutation_rate=1.0)
        assert (await client.ask(creation("a", 30), 6)).topics[0].error_code == 0
        refused = await client.ask(creation("b", 1), 6)
        assert refused.topics[0].error_code == EXCEEDED
        assert 10_000 < refused.throttle_time_ms <= 20_000
        unmute(broker)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")])
        assert (await client.ask(deletion, 6)).responses[0].error_code == EXCEEDED
        unmute(broker)
        growth = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=31, assignments=None)])
        assert (await client.ask(growth, 3)).results[0].error_code == EXCEEDED
        unmute(broker)
        assert broker.node.image.topic("b") is None
        # A client that does not know the error is served, and then waits.
        served = await client.ask(creation("b", 1), 5)
        assert (served.topics[0].error_code, served.throttle_time_ms > 10_000) == (0, True)
        unmute(broker)
        nothing = creation("c", 1)
        nothing.validate_only = True
        assert (await client.ask(nothing, 6)).topics[0].error_code == 0

    scenario(tmp_path, story)


def test_a_fetch_that_began_before_there_were_quotas_is_not_charged_for_all_the_time_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slowly(parts: list[Any]) -> list[None]:
        began.set()
        assert may_end.wait(60)
        return [None for _ in parts]

    monkeypatch.setattr(fetch_handler, "is_cold", lambda part: True)
    monkeypatch.setattr(fetch_handler, "warm", slowly)

    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        await client.ask(records(100), 9)
        client.send(fetch(), 12)
        try:
            while not began.is_set():
                await admin.ask(ApiVersionsRequest(), 0)
            await limit(broker, request_percentage=100.0)
        finally:
            may_end.set()
        answer = await client.receive(fetch(), 12)
        assert answer.throttle_time_ms == 0
        assert answer.responses[0].partitions[0].records

    scenario(tmp_path, story)


def test_without_quotas_nothing_is_remembered(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        quotas: ClientQuotas = broker.node.client_quotas
        assert not quotas.is_active
        await limit(broker, producer_byte_rate=1e9)
        await client.ask(records(10), 9)
        assert quotas.is_active
        assert quotas._clients
        await limit(broker, producer_byte_rate=None)
        await client.ask(records(10), 9)
        assert not quotas.is_active
        assert not quotas._clients
        assert not quotas._shared

    scenario(tmp_path, story)


def test_clients_that_come_and_go_fill_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "MOST_CLIENTS", 8)

    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        quotas: ClientQuotas = broker.node.client_quotas
        ops = [OpData(key="producer_byte_rate", value=1e9)]
        entry = RequestEntryData(entity=[EntityData(entity_type="client-id", entity_name=None)], ops=ops)
        await admin.ask(AlterClientQuotasRequest(entries=[entry]), 1)
        for number in range(200):
            quotas._of("ANONYMOUS", f"client-{number}", number)
        assert 8 <= len(quotas._shared) <= 8 * 4

    scenario(tmp_path, story)


def test_long_client_ids_are_not_kept_and_have_quotas_of_their_own(tmp_path: Path) -> None:
    async def story(broker: LoneBroker, admin: Client, client: Client) -> None:
        quotas: ClientQuotas = broker.node.client_quotas
        entry = RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name=None)],
            ops=[OpData(key=name, value=1e9) for name in ("producer_byte_rate", "controller_mutation_rate")],
        )
        await admin.ask(AlterClientQuotasRequest(entries=[entry]), 1)
        before = len(quotas._clients)
        for number in range(3):
            long: Any = SimpleNamespace(principal=ANONYMOUS, client_id="c" * 32_000 + str(number))
            quotas._client(long)
        assert len(quotas._clients) == before + 3
        assert all(len(text) < 400 for key in (*quotas._clients, *quotas._shared) for text in key)

    scenario(tmp_path, story)


class Used:
    def __init__(self, last_ms: int) -> None:
        self.last_ms = last_ms


def test_those_who_were_quiet_for_an_hour_are_forgotten_first() -> None:
    entries = {number: Used(number * 1_000_000) for number in range(8)}
    forget_oldest(entries, 7_000_000)
    assert list(entries) == [4, 5, 6, 7]
    forget_oldest(entries, 7_000_000)
    assert list(entries) == [6, 7]
