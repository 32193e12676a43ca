"""Spark's driver finds the leader of a partition where the first broker that it asks knows only the one before."""

from __future__ import annotations

from penstock.model.api_keys import ApiKey
from penstock.model.ids import TopicPartition
from penstock.spark.options import Subscription
from penstock.spark.reading.topics import Topics
from tests.unit.client.hostile_broker import END_OFFSET
from tests.unit.client.test_leader_epochs import NEW_EPOCH, OLD_EPOCH, Sent, elected_anew, sent
from tests.unit.client.test_stale_brokers import two_brokers

__all__ = ["sent"]  # the fixture


def test_it_asks_with_the_epoch_and_again_with_the_new_one(sent: Sent) -> None:
    with elected_anew(sent) as broker:
        properties = {"bootstrap.servers": broker.bootstrap}
        topics = Topics(Subscription(topics=("orders",)), properties, is_read_committed=False)
        assert topics.ends() == {TopicPartition("orders", 0): END_OFFSET}
        topics.close()
    assert sent.epochs == [OLD_EPOCH, NEW_EPOCH]


def test_a_stream_is_planned_with_what_another_broker_knows() -> None:
    with two_brokers() as (stale, leads):
        subscription = Subscription(topics=("orders",), partitions=(), pattern=None)
        properties = {
            "bootstrap.servers": f"localhost:{stale.port}",  # one broker under two names
            "default.api.timeout.ms": "10000",
        }
        topics = Topics(subscription, properties, is_read_committed=False)
        assert topics.ends() == {TopicPartition("orders", 0): END_OFFSET}
        topics.close()
        assert ApiKey.LIST_OFFSETS in leads.asked
