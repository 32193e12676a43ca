"""The fault run of `make chaos`, short: real kills and pauses under load, then every record is looked at."""

from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.testing.clusters import wait_until
from penstock.testing.penstock_broker import PenstockBroker
from simulation.chaos.ledger import Ledger, Wrong
from simulation.chaos.load import Load
from simulation.chaos.run import Settings, run_chaos
from tests.crash.plain_client import create_topic, produce

WAIT_S = 60.0


def test_half_a_minute_of_kills_and_pauses_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    report = run_chaos(Settings(seconds=30, seed=4, rate=1_000), tmp_path)
    assert report.problems == []
    assert report.ledger.examples == []
    assert report.is_clean
    assert report.ledger.acknowledged_count > 1_000
    assert report.ledger.commit_count > 10
    assert report.faults.total() >= 3


def test_a_consumer_whose_position_is_gone_is_noticed(broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [b"one", b"two"])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for deleted in admin.delete_records([TopicPartition(topic_name, 0, 1)]).values():
        deleted.result(WAIT_S)
    ledger = Ledger()
    load = Load(
        broker.bootstrap,
        topic_name,
        ledger,
        partition_count=1,
        producer_count=0,
        consumer_count=1,
        rate=1,
        record_bytes=100,
        acks="all",
    )
    load.start()
    wait_until(lambda: bool(ledger.wrong), "the complaint")
    load.finish_consuming()
    assert dict(ledger.wrong) == {Wrong.CONSUMER_ERROR: 1}
