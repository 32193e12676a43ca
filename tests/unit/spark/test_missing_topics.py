"""A topic that was read is gone when the cluster says so for some time, not when one answer does."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.build import build_batch
from penstock.spark.failures import DataLoss
from penstock.spark.options import Subscription
from penstock.spark.reading import topics
from penstock.spark.reading.offsets import OffsetRange
from penstock.spark.reading.task import read_range
from penstock.spark.reading.topics import Topics
from penstock.wire.messages.metadata import MetadataResponse
from tests.unit.client.hostile_broker import END_OFFSET, HostileBroker, hostile_broker, metadata
from tests.unit.client.test_hostile_brokers import fetched

ORDERS = TopicPartition("orders", 0)


class Forgetful:
    """Says of the topic that it does not exist, so many times after the first answer."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.has_answered = False
        self.broker: HostileBroker

    def answer(self, version: int) -> MetadataResponse:
        known = metadata("127.0.0.1", self.broker.port)
        if self.has_answered and self.left:
            self.left -= 1
            known.topics[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            known.topics[0].partitions = []
        self.has_answered = True
        return known


@pytest.fixture
def forgetful() -> Iterator[Forgetful]:
    answers = Forgetful(2)
    with hostile_broker({ApiKey.METADATA: answers.answer}) as broker:
        answers.broker = broker
        yield answers


def opened(broker: HostileBroker) -> Topics:
    subscription = Subscription(topics=("orders",), partitions=(), pattern=None)
    return Topics(subscription, {"bootstrap.servers": broker.bootstrap}, is_read_committed=False)


def test_one_answer_without_a_topic_that_was_read_is_asked_again(forgetful: Forgetful) -> None:
    reader = opened(forgetful.broker)
    try:
        assert reader.ends() == {ORDERS: END_OFFSET}
        assert reader.ends() == {ORDERS: END_OFFSET}
        assert forgetful.left == 0
    finally:
        reader.close()


def test_a_query_that_is_started_again_expects_the_topics_that_it_has_read(forgetful: Forgetful) -> None:
    forgetful.has_answered = True
    reader = opened(forgetful.broker)
    try:
        reader.expect([ORDERS])
        assert reader.ends() == {ORDERS: END_OFFSET}
    finally:
        reader.close()


def test_a_topic_that_stays_away_is_gone(forgetful: Forgetful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "GONE_AFTER_S", 0.3)
    forgetful.left = 10_000
    reader = opened(forgetful.broker)
    try:
        assert reader.ends() == {ORDERS: END_OFFSET}
        assert reader.ends() == {}
        left = forgetful.left
        assert reader.ends() == {}
        assert left - forgetful.left == 1, "it is waited for once"
    finally:
        reader.close()


def rows_of_task(broker: HostileBroker, *, fail_on_data_loss: bool, timeout_ms: str = "30000") -> int:
    schema = pa.schema([pa.field("value", pa.binary())])
    properties = {"bootstrap.servers": broker.bootstrap, "default.api.timeout.ms": timeout_ms}
    batches = read_range(
        OffsetRange("orders", 0, 0, END_OFFSET),
        schema=schema,
        values=None,
        properties=properties,
        is_read_committed=False,
        fail_on_data_loss=fail_on_data_loss,
    )
    return sum(batch.num_rows for batch in batches)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_task_does_not_take_its_topic_for_deleted_because_a_broker_does_not_know_it_yet(
    fail_on_data_loss: bool,
) -> None:
    answers = Forgetful(3)
    answers.has_answered = True
    records = bytes(build_batch([(None, b"%d" % number, (), 0) for number in range(END_OFFSET)]))
    with hostile_broker(
        {ApiKey.METADATA: answers.answer, ApiKey.FETCH: lambda _: fetched(records)}
    ) as broker:
        answers.broker = broker
        assert rows_of_task(broker, fail_on_data_loss=fail_on_data_loss) == END_OFFSET


def test_a_task_whose_topic_stays_away_says_that_it_was_deleted() -> None:
    answers = Forgetful(10_000)
    answers.has_answered = True
    with hostile_broker({ApiKey.METADATA: answers.answer}) as broker:
        answers.broker = broker
        with pytest.raises(DataLoss, match="orders-0 was deleted"):
            rows_of_task(broker, fail_on_data_loss=True, timeout_ms="600")
        assert rows_of_task(broker, fail_on_data_loss=False, timeout_ms="600") == 0
