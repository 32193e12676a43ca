"""What a leader asks the controller about the in-sync set, and what it makes of the answers."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.isr_changes import IsrChanges
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tests.unit.storage.batches import StillClock

ORDERS = bytes(15) + b"1"
PATIENCE_SECONDS = 60
Answer = AlterPartitionResponse | Exception


class FakeNode:
    """A leader's; the controller answers what the test has given it."""

    broker_id, broker_epoch = 1, 10
    topic_id = ORDERS

    def __init__(self, path: Path, answers: list[Answer]) -> None:
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.clock = StillClock()
        self.partitions = self
        self.asked: list[AlterPartitionRequest] = []
        self._answers = answers
        self.before_answer: Callable[[], None] = lambda: None
        self.roles = self
        self.steps_down = 0
        log = Log.open(OsDisk(), str(path / "orders-0"), LogOptions(), self.clock)
        self.partition = Partition("orders", 0, log, self.clock, leader_epoch=-1, high_watermark=0)
        placed = image.PartitionRegistration((1, 2, 3), (1, 2), leader=1, leader_epoch=4, partition_epoch=6)
        self.partition.lead(placed, own_id=1)

    def topic(self, name: str) -> "FakeNode":
        return self

    def step_down(self) -> None:
        self.steps_down += 1

    async def ask_controller(self, request: AlterPartitionRequest, *args: Any, **options: Any) -> Any:
        self.asked.append(request)
        self.before_answer()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answered(error: ErrorCode = ErrorCode.NONE) -> AlterPartitionResponse:
    state = ResponsePartitionData(
        partition_index=0, error_code=error, leader_id=1, leader_epoch=4, isr=(1, 2, 3), partition_epoch=7
    )
    return AlterPartitionResponse(topics=[ResponseTopicData(topic_id=ORDERS, partitions=[state])])


def propose(
    path: Path, answers: list[Answer], check: Callable[[FakeNode], Coroutine[Any, Any, None]]
) -> None:
    async def main() -> None:
        node: Any = FakeNode(path, answers)
        proposed = node.partition.follower_fetched(3, 0, broker_epoch=30)
        changes = IsrChanges(node)
        changes.propose(node.partition, proposed)
        await check(node)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while changes._task is not None:
                await asyncio.sleep(0.01)

    asyncio.run(main())


async def until_joined(node: FakeNode) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while node.partition.replica.isr != {1, 2, 3}:
            await asyncio.sleep(0.01)


def test_a_request_that_is_sent_again_has_the_epoch_with_which_the_follower_had_caught_up(
    tmp_path: Path,
) -> None:
    """Started again meanwhile, with another epoch and perhaps an empty disk, it must not come in by this request."""

    async def check(node: FakeNode) -> None:
        def start_again() -> None:
            node.partition.follower_fetched(3, 0, broker_epoch=31)

        node.before_answer = start_again
        await until_joined(node)
        sent = [request.topics[0].partitions[0].new_isr_with_epochs for request in node.asked]
        assert [{each.broker_id: each.broker_epoch for each in members}[3] for members in sent] == [30, 30]

    propose(tmp_path, [OSError("no answer"), answered()], check)


def test_a_controller_that_was_replaced_is_not_the_last_to_be_asked(tmp_path: Path) -> None:
    propose(tmp_path, [answered(ErrorCode.NOT_CONTROLLER), answered()], until_joined)


def test_no_failure_ends_the_asking(tmp_path: Path) -> None:
    failures: list[Answer] = [ApiError(ErrorCode.NOT_CONTROLLER), ValueError("a mistake"), TimeoutError()]
    propose(tmp_path, [*failures, answered()], until_joined)


def test_a_topic_that_the_image_does_not_know_yet_is_named_by_its_id(tmp_path: Path) -> None:
    async def check(node: FakeNode) -> None:
        await until_joined(node)
        assert node.asked[0].topics[0].topic_id == ORDERS

    propose(tmp_path, [answered()], check)


REFUSALS: list[Answer] = [
    AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
    ApiError(ErrorCode.STALE_BROKER_EPOCH),  # by ourselves, when we are the controller
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=["answered", "raised"])
def test_who_is_not_registered_any_more_steps_down(tmp_path: Path, refusal: Answer) -> None:
    async def check(node: FakeNode) -> None:
        await until_joined(node)
        assert node.steps_down == 1

    propose(tmp_path, [refusal, answered()], check)


@pytest.mark.parametrize("refusal", REFUSALS, ids=["answered", "raised"])
def test_who_has_registered_anew_since_it_asked_keeps_what_it_leads(tmp_path: Path, refusal: Answer) -> None:
    """It may have been told since what to lead, and nobody tells it again."""

    async def check(node: FakeNode) -> None:
        def register_anew() -> None:
            node.broker_epoch = 20

        node.before_answer = register_anew
        await until_joined(node)
        assert node.steps_down == 0
        assert [request.broker_epoch for request in node.asked] == [10, 20]

    propose(tmp_path, [refusal, answered()], check)
