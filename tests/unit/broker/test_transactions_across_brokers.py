"""A transaction coordinator among other brokers: markers for their partitions, and producers that ask from there."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.coordinators import markers as transaction_markers
from penstock.broker.coordinators import transactions as transaction_host
from penstock.broker.coordinators.admission import ClientLevel
from penstock.broker.handlers import add_partitions_to_txn, write_txn_markers
from penstock.metadata import image
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import TRANSACTION_STATE
from penstock.net.peer_connection import PeerUnavailable
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.unit.broker.newest_versions import NewestVersions
from tests.unit.broker.transaction_harness import PRODUCER_ID, batch, begin, end, in_loop, state

OTHER = 2
PLACE = TopicPartition("orders", 1)


class FakePeers:
    """The other brokers: answers with what `answer` makes of a request."""

    def __init__(self, answer: Callable[[int, Any], Awaitable[Any]]) -> None:
        self.asked: list[tuple[int, Any]] = []
        self._answer = answer

    async def ask(self, broker_id: int, request: Any, response: type, **_: Any) -> Any:
        self.asked.append((broker_id, request))
        answer = await self._answer(broker_id, request)
        assert isinstance(answer, response)
        return answer


def lead_elsewhere(node: Any, topic: str, index: int, leader: int = OTHER) -> None:
    """Another broker leads the partition, as the image knows; ours follows."""
    placed = image.PartitionRegistration((1, 2), (1, 2), leader=leader, leader_epoch=1)
    node.image.apply(image.PartitionChanged(topic, index, placed))
    node.image.add_broker(image.BrokerRegistration(OTHER, {}))
    node.get(topic, index).follow(placed)


def lead_with_follower(node: Any, topic: str, index: int) -> None:
    placed = image.PartitionRegistration((1, 2), (1, 2), leader=1, leader_epoch=1)
    node.image.apply(image.PartitionChanged(topic, index, placed))
    node.get(topic, index).lead(placed, 1)
    replicate(node, topic, index)


def replicate(node: Any, topic: str, index: int) -> None:
    partition = node.get(topic, index)
    partition.follower_fetched(OTHER, partition.log.end_offset)


def markers_answer(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def admission_answer(request: AddPartitionsToTxnRequest, error: ErrorCode) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=wanted.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=error
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in wanted.topics
                ],
            )
            for wanted in request.transactions
        ]
    )


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def turns() -> None:
    """Enough for everything that does not wait for anybody else."""
    for _ in range(20):
        await asyncio.sleep(0)


def admit(node: Any, transactional_id: str = "tx", client: ClientLevel = ClientLevel.KNOWS_ABORTABLE) -> Any:
    return node.transactions.admit(
        transactional_id, [PLACE], producer_id=PRODUCER_ID, producer_epoch=0, client=client
    )


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_markers, "RETRY_SECONDS", 0.001)


# --- markers


def test_a_marker_goes_to_the_broker_that_leads_until_that_one_takes_it(tmp_path: Path) -> None:
    answers: list[Any] = [
        PeerUnavailable("other:9092: connection refused"),
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]

    async def answer(broker_id: int, request: Any) -> Any:
        error = answers.pop(0)
        if isinstance(error, Exception):
            raise error
        return markers_answer(request, error)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        await begin(node, 0, 1)
        lead_elsewhere(node, "orders", 1)
        assert await end(node) == 0
        while await state(node) != "CompleteAbort":
            await asyncio.sleep(0.001)
        assert not answers
        assert {broker_id for broker_id, _ in node.peers.asked} == {OTHER}
        (marker,) = node.peers.asked[-1][1].markers
        assert (marker.producer_id, marker.transaction_result) == (PRODUCER_ID, False)
        assert [(topic.name, list(topic.partition_indexes)) for topic in marker.topics] == [("orders", [1])]
        assert node.get("orders", 0).log.end_offset == 1, "ours has its marker, and needs no other"

    in_loop(work, tmp_path)


def test_a_partition_without_a_leader_is_waited_for(tmp_path: Path) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        return markers_answer(request, ErrorCode.NONE)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        await begin(node, 1)
        lead_elsewhere(node, "orders", 1, leader=image.NO_LEADER)
        assert await end(node) == 0
        await turns()
        assert (await state(node), node.peers.asked) == ("PrepareAbort", [])
        lead_elsewhere(node, "orders", 1)
        while await state(node) != "CompleteAbort":
            await asyncio.sleep(0.001)

    in_loop(work, tmp_path)


def test_a_coordinator_that_is_none_any_more_sends_no_markers(tmp_path: Path) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        raise PeerUnavailable("other:9092: connection refused")

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        await begin(node, 1)
        lead_elsewhere(node, "orders", 1)
        assert await end(node) == 0
        await until(lambda: len(node.peers.asked) > 2)
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        node.transactions.partition_lost(0)
        await turns()
        asked = len(node.peers.asked)
        assert not node.transactions._markers._rounds
        await turns()
        assert len(node.peers.asked) == asked

    in_loop(work, tmp_path)


def test_markers_of_a_shard_that_was_given_up_do_not_end_what_its_successor_still_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_host, "COMPLETE_AGAIN_SECONDS", 0.01)

    async def work(node: Any) -> None:
        await begin(node, 0)
        lead_with_follower(node, "orders", 0)
        lead_with_follower(node, TRANSACTION_STATE, 0)
        ending = asyncio.create_task(end(node))
        await turns()
        replicate(node, TRANSACTION_STATE, 0)
        assert await ending == 0
        coordinator = node.get(TRANSACTION_STATE, 0)
        coordinator.replica.min_insync_replicas = 2
        coordinator.settle_isr(frozenset({1}), 1)
        replicate(node, "orders", 0)  # the markers are written, but that cannot be noted
        await turns()
        node.transactions.partition_lost(0)
        lead_elsewhere(node, "orders", 0, leader=image.NO_LEADER)
        coordinator.settle_isr(frozenset({1, 2}), 2)
        node.transactions.load_all()
        await asyncio.sleep(0.03)
        replicate(node, TRANSACTION_STATE, 0)
        assert await state(node) == "PrepareAbort"
        node.transactions.close()

    in_loop(work, tmp_path)


def test_a_topic_that_a_new_leader_has_not_heard_of_is_not_taken_for_deleted(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 1)
        topic = node.image.topic("orders")
        hidden = node.logs.pop(("orders", 1))
        node.image.apply(image.TopicDeleted("orders"))
        placed = image.PartitionRegistration((1,), (1,), leader=1, leader_epoch=1)
        node.get(TRANSACTION_STATE, 0).lead(placed, 1)  # which the image does not know yet
        assert await end(node) == 0
        await turns()
        assert await state(node) == "PrepareAbort"
        node.logs["orders", 1] = hidden
        node.image.apply(image.TopicCreated("orders", topic.topic_id, tuple(topic.partitions)))
        while await state(node) != "CompleteAbort":
            await asyncio.sleep(0.001)
        assert hidden.log.end_offset == 1

    in_loop(work, tmp_path)


def test_a_transaction_is_over_when_its_markers_are_committed(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0)
        lead_with_follower(node, "orders", 0)
        assert await end(node) == 0
        await turns()
        assert node.get("orders", 0).log.end_offset == 1
        assert await state(node) == "PrepareAbort"
        replicate(node, "orders", 0)
        assert await state(node) == "CompleteAbort"

    in_loop(work, tmp_path)


def test_markers_follow_the_decision_when_that_is_committed(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0)
        lead_with_follower(node, TRANSACTION_STATE, 0)
        ending = asyncio.create_task(end(node))
        await turns()
        assert not ending.done()
        assert node.get("orders", 0).log.end_offset == 0, "a new coordinator may not know of the decision"
        replicate(node, TRANSACTION_STATE, 0)
        assert await ending == 0
        assert node.get("orders", 0).log.end_offset == 1

    in_loop(work, tmp_path)


def test_a_broker_asked_to_write_markers_answers_when_they_are_committed(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        lead_with_follower(node, "orders", 0)
        topic = WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 1, 7])
        marker = WritableTxnMarker(
            producer_id=PRODUCER_ID, producer_epoch=0, transaction_result=True, topics=[topic]
        )
        call: Any = None
        handled = write_txn_markers.handle(node, call, WriteTxnMarkersRequest(markers=[marker]))
        answering = asyncio.ensure_future(handled)
        await turns()
        assert not answering.done()
        replicate(node, "orders", 0)
        ((answered,),) = [each.topics for each in (await answering).markers]
        assert [result.error_code for result in answered.partitions] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    in_loop(work, tmp_path)


# --- admission


def test_a_producer_is_let_in_by_the_coordinator_on_another_broker(tmp_path: Path) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        return admission_answer(request, ErrorCode.NONE)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        assert await admit(node) == {}
        ((broker_id, request),) = node.peers.asked
        (wanted,) = request.transactions
        assert (broker_id, wanted.transactional_id, wanted.verify_only) == (OTHER, "tx", True)
        assert await admit(node, client=ClientLevel.LEAVES_ADDING_TO_THE_BROKER) == {}
        assert not node.peers.asked[1][1].transactions[0].verify_only

    in_loop(work, tmp_path)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.NOT_ENOUGH_REPLICAS),
        (None, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
    ids=lambda error: "nothing" if error is None else error.name,
)
def test_what_the_coordinator_says_is_told_in_words_a_producer_knows(
    tmp_path: Path, said: ErrorCode | None, told: ErrorCode
) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        if said is None:
            raise PeerUnavailable("other:9092: no answer in time")
        return admission_answer(request, said)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        assert await admit(node) == {PLACE: told}

    in_loop(work, tmp_path)


def test_no_coordinator_lets_nobody_in(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        lead_elsewhere(node, TRANSACTION_STATE, 0, leader=image.NO_LEADER)
        assert admit(node) == {PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}

    in_loop(work, tmp_path)


def test_an_answer_that_leaves_a_partition_out_lets_nobody_in(tmp_path: Path) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        result = AddPartitionsToTxnResult(transactional_id="tx")
        return AddPartitionsToTxnResponse(results_by_transaction=[result])

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        assert await admit(node) == {PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}

    in_loop(work, tmp_path)


def test_producers_that_ask_meanwhile_are_asked_for_together(tmp_path: Path) -> None:
    first_is_answered = asyncio.Event()

    async def answer(broker_id: int, request: Any) -> Any:
        await first_is_answered.wait()
        return admission_answer(request, ErrorCode.NONE)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        names = ["a", "b", "c", "b"]
        asking = []
        for name in names:
            asking.append(asyncio.ensure_future(admit(node, name)))
            await turns()
        first_is_answered.set()
        assert await asyncio.gather(*asking) == [{}] * 4
        asked = [[each.transactional_id for each in request.transactions] for _, request in node.peers.asked]
        assert asked == [["a"], ["b", "c"], ["b"]]

    in_loop(work, tmp_path)


def test_a_producer_whose_transaction_ends_while_it_is_asked_for_is_not_let_in(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def answer(broker_id: int, request: Any) -> Any:
        await may_answer.wait()
        return admission_answer(request, ErrorCode.NONE)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        asking = asyncio.ensure_future(admit(node))
        await turns()
        told: list[object] = []
        transaction_markers.write_markers(
            node,
            [PLACE],
            told.append,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            committed=True,
            coordinator_epoch=1,
            transaction_version=1,
        )
        assert told == [{PLACE: ErrorCode.NONE}]
        may_answer.set()
        assert await asking == {PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}
        assert await admit(node) == {}, "the next one is another matter"
        assert not node.transactions.admissions._guards

    in_loop(work, tmp_path)


def test_a_consent_does_not_outlast_the_leadership_it_was_asked_in(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def answer(broker_id: int, request: Any) -> Any:
        await may_answer.wait()
        return admission_answer(request, ErrorCode.NONE)

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        asking = asyncio.ensure_future(admit(node))
        await turns()
        lead_elsewhere(node, *PLACE)
        placed = image.PartitionRegistration((1, 2), (1, 2), leader=1, leader_epoch=2)
        node.get(*PLACE).lead(placed, 1)
        may_answer.set()
        assert await asking == {PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}

    in_loop(work, tmp_path)


def test_a_host_that_closes_fails_those_who_wait_for_another_broker(tmp_path: Path) -> None:
    async def answer(broker_id: int, request: Any) -> Any:
        await asyncio.Event().wait()

    async def work(node: Any) -> None:
        node.peers, node.spoken = FakePeers(answer), NewestVersions()
        lead_elsewhere(node, TRANSACTION_STATE, 0)
        asking = [asyncio.ensure_future(admit(node, name)) for name in "ab"]
        await turns()
        asking.append(asyncio.ensure_future(admit(node, "c")))
        await turns()
        node.transactions.close()
        assert await asyncio.gather(*asking) == [{PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}] * 3

    in_loop(work, tmp_path)


def test_a_coordinator_asked_by_a_broker_answers_for_all_when_the_last_is_committed(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node)
        lead_with_follower(node, TRANSACTION_STATE, 0)
        topic = AddPartitionsToTxnTopic(name="orders", partitions=[1])
        wanted = [
            AddPartitionsToTxnTransaction(
                transactional_id=name, producer_id=PRODUCER_ID, producer_epoch=0, topics=[topic]
            )
            for name in ("tx", "nobody")
        ]
        header = SimpleNamespace(api_version=5, client_id="")
        call: Any = SimpleNamespace(header=header, api_version=5, client_host="")
        request = AddPartitionsToTxnRequest(transactions=wanted)
        answering = asyncio.create_task(add_partitions_to_txn.handle(node, call, request))
        await turns()
        assert not answering.done()
        replicate(node, TRANSACTION_STATE, 0)
        errors = [
            result.topic_results[0].results_by_partition[0].partition_error_code
            for result in (await answering).results_by_transaction
        ]
        assert errors == [ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING]

    in_loop(work, tmp_path)


def test_a_first_batch_waits_until_its_partition_is_known_to_belong_to_the_transaction(
    tmp_path: Path,
) -> None:
    async def work(node: Any) -> None:
        await begin(node)
        lead_with_follower(node, TRANSACTION_STATE, 0)
        asking = asyncio.ensure_future(admit(node, client=ClientLevel.LEAVES_ADDING_TO_THE_BROKER))
        await turns()
        assert not asking.done()
        replicate(node, TRANSACTION_STATE, 0)
        assert await asking == {}
        node.get(*PLACE).append(memoryview(batch()), verified_transaction=True)
        assert node.get(*PLACE).has_open_transaction(PRODUCER_ID, 0)

    in_loop(work, tmp_path)
