"""The host of the transaction coordinator over real logs: where its markers go, and whom it lets in."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.coordinators import host as coordinator_host
from penstock.broker.coordinators import markers as transaction_markers
from penstock.broker.coordinators.transactions import TransactionHost
from penstock.broker.handlers import produce
from penstock.broker.partitions.partition import Partition
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire import framing
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import frame_of
from tests.unit.broker.transaction_harness import batch, begin, end, in_loop, state


def test_a_partition_that_could_not_be_opened_gets_its_marker_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_markers, "RETRY_SECONDS", 0.01)

    async def work(node: Any) -> None:
        await begin(node, 0, 1)
        for index in (0, 1):
            node.get("orders", index).append(memoryview(batch()), verified_transaction=True)
        hidden = node.logs.pop(("orders", 1))
        assert await end(node) == 0
        assert node.get("orders", 0).last_stable_offset == 2
        assert await state(node) == "PrepareAbort"
        node.logs["orders", 1] = hidden
        while await state(node) != "CompleteAbort":
            await asyncio.sleep(0.005)
        assert hidden.last_stable_offset == 2
        assert node.get("orders", 0).log.end_offset == 2, "it has its marker, and needs no other"

    in_loop(work, tmp_path)


def test_a_partition_that_was_deleted_needs_no_marker(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0, 1)
        node.image.apply(image.TopicDeleted("orders"))
        for index in (0, 1):
            node.logs.pop(("orders", index)).log.close()
        assert await end(node) == 0
        assert await state(node) == "CompleteAbort"

    in_loop(work, tmp_path)


def test_a_batch_that_waited_for_the_coordinator_does_not_begin_again_what_has_ended(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0)
        node.transactions.close()
        node.transactions = TransactionHost(node)  # one that has to load first
        answered: list[object] = []
        data = PartitionProduceData(index=0, records=bytes(batch()))
        sent = frame_of(
            ProduceRequest(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name="orders", partition_data=[data])],
            ),
            11,
        )
        header = framing.read_header(memoryview(sent))
        connection = SimpleNamespace(
            defer=lambda: SimpleNamespace(resolve=answered.append),
            hold=lambda frame: frame,
            release=lambda: None,
            is_closed=False,
            close=answered.append,
        )
        call: Any = SimpleNamespace(api_version=11, client_id="client", header=header, connection=connection)
        produce.handle_frame(node, call, memoryview(bytearray(sent)), header.body_offset)
        await asyncio.sleep(0)  # it is in the queue for the coordinator now
        assert await end(node) == 0  # decided in the same step as the consent to the batch, right behind it
        while not answered:
            await asyncio.sleep(0)
        partition = node.get("orders", 0)
        assert partition.last_stable_offset == partition.log.end_offset == 1, "the marker is all there is"

    in_loop(work, tmp_path)


def test_a_shard_whose_log_failed_once_is_loaded_again_though_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "LOAD_AGAIN_SECONDS", 0.01)

    def fail(*_: object) -> None:
        raise OSError("too many open files")

    async def work(node: Any) -> None:
        await begin(node, 0)
        with monkeypatch.context() as broken:
            broken.setattr(Partition, "append_own", fail)
            with pytest.raises(ApiError, check=lambda refusal: refusal.code is ErrorCode.NOT_COORDINATOR):
                await end(node)
        assert node.faults
        assert not node.transactions._shards
        while not node.transactions._shards:
            await asyncio.sleep(0.005)
        assert await state(node) == "Ongoing"

    in_loop(work, tmp_path)
