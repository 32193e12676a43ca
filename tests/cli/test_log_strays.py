"""penstock log strays, and what status says of strays and damage: one broker, whose metadata does not know all of its logs."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from penstock.admin.restoration import brokers_away, lost_names, plan
from penstock.admin.strays import by_topic
from penstock.client.errors import UserError
from penstock.config.topic_options import KEEP_ALL
from penstock.model.ids import TopicPartition, id_text
from penstock.model.strays import FoundStray
from penstock.model.units import ranges_text
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.stores.embedded import FILE_NAME
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.conftest import Finished, Run
from tests.unit.storage.batches import append, close_cleanly

ORDERS_ID = bytes(range(16))
BILLS_ID = bytes(range(1, 17))
PATIENCE_S = 30.0


def make_log(
    directory: Path,
    name: str,
    partition: int,
    records: int,
    *,
    epoch: int = 0,
    topic_id: bytes = ORDERS_ID,
) -> None:
    """Of a topic that no metadata knows."""
    logs = LogDirectory(OsDisk(), str(directory), SystemClock())
    log = logs.open_log(TopicPartition(name, partition), LogOptions(), topic_id=topic_id)
    append(log, records, leader_epoch=epoch)
    close_cleanly(log)
    logs.release()


def group_consumer(broker: PenstockBroker, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})


def commit(broker: PenstockBroker, group: str, offset: int) -> None:
    consumer = group_consumer(broker, group)
    consumer.commit(offsets=[Place("kept", 0, offset)], asynchronous=False)
    consumer.close()


def committed(broker: PenstockBroker, group: str) -> int:
    consumer = group_consumer(broker, group)
    (found,) = consumer.committed([Place("kept", 0)], PATIENCE_S)
    consumer.close()
    return int(found.offset)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[PenstockBroker]:
    """It has a topic of its own, and comes back to find two logs of another."""
    with PenstockBroker(tmp_path) as first:
        producer = Producer({"bootstrap.servers": first.bootstrap, "log_level": 0})
        producer.produce("kept", b"record")
        assert producer.flush(PATIENCE_S) == 0
    for partition, records in enumerate((3, 5)):
        make_log(tmp_path / "data", "orders", partition, records)
    with PenstockBroker(tmp_path) as again:
        yield again


@pytest.fixture
def strays(broker: PenstockBroker, run: Run) -> Run:
    """A command of `penstock log strays` against the broker."""

    def run_verb(verb: str, *words: str) -> Finished:
        return run("penstock", "log", "strays", verb, *words, "-b", broker.bootstrap)

    return run_verb


def stray(
    broker: int, partition: int, *, end: int = 10, epoch: int = 3, topic_id: bytes = ORDERS_ID
) -> FoundStray:
    name = f"orders-{partition}.{topic_id.hex()}-stray"
    return FoundStray(broker, "/data", name, "orders", partition, topic_id, 100, 0, end, epoch, 0)


def topic_of(
    name: str, partitions: int, topic_id: bytes, *, replicas: Sequence[int] = ()
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        topic_id=topic_id,
        partitions=[
            MetadataResponsePartition(partition_index=index, replica_nodes=replicas)
            for index in range(partitions)
        ],
    )


def test_strays_are_listed_by_the_brokers_and_in_a_directory(
    strays: Run, run: Run, tmp_path: Path, broker: PenstockBroker
) -> None:
    listed = json.loads(strays("list", "-o", "json").out)
    assert [(one["topic"], one["partition"], one["end_offset"]) for one in listed] == [
        ("orders", 0, 3),
        ("orders", 1, 5),
    ]
    assert {one["topic_id"] for one in listed} == {id_text(ORDERS_ID)}
    (summary,) = [line.split() for line in strays("list").out.splitlines() if line.startswith("orders")]
    assert summary[:4] == ["orders", id_text(ORDERS_ID), "0-1", "2"]
    assert summary[-2:] == ["1", "no"]
    assert "orders-1" in strays("list", "--topic", id_text(ORDERS_ID)).out
    assert strays("list", "--topic", "other").err == "No strays of other.\n"
    found = json.loads(run("penstock", "log", "strays", "list", str(tmp_path / "data"), "-o", "json").out)
    assert [one["directory"] for one in found] == [one["directory"] for one in listed]
    assert "2 strays: penstock log strays list" in run("penstock", "log", "show", str(tmp_path / "data")).err
    status = run("penstock", "status", "-b", broker.bootstrap)
    assert "strays: 2 on broker 1" in status.out
    assert "lost to the cluster: 2 partitions of which there are only strays (orders)" in status.out
    assert "healthy" not in status.out
    assert status.code == 1
    verified = run("penstock", "log", "verify", str(tmp_path / "data"))
    assert "note: orders-0." in verified.out
    assert verified.code == 0


def test_a_topic_is_restored_with_its_records(
    strays: Run, run: Run, broker: PenstockBroker, tmp_path: Path
) -> None:
    done = strays("restore", "orders", "--config", "retention.ms=-1", "-o", "json")
    assert json.loads(done.out)["end_offsets"] == [3, 5]
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    got = []
    while len(got) < 8:
        got += [message for message in consumer.consume(8, PATIENCE_S) if message.error() is None]
    consumer.close()
    assert len(got) == 8
    assert strays("list").err == "No strays.\n"
    assert (tmp_path / "data" / "orders-1").is_dir()
    assert run("penstock", "status", "-b", broker.bootstrap).code == 0


def test_a_topic_whose_configs_are_not_given_keeps_all_records(
    strays: Run, run: Run, broker: PenstockBroker
) -> None:
    done = strays("restore", "orders", "--config", "retention.bytes=1000000")
    assert "all records are kept (cleanup.policy=delete retention.ms=-1)" in done.err
    described = run(
        "penstock", "configs", "describe", "--topic", "orders", "-b", broker.bootstrap, "-o", "json"
    )
    settings = json.loads(described.out)
    assert {one["name"]: one["value"] for one in settings} == {**KEEP_ALL, "retention.bytes": "1000000"}


def test_partitions_that_come_later_are_restored_to_the_topic(tmp_path: Path, run: Run) -> None:
    """As those of a broker that was away."""
    with PenstockBroker(tmp_path) as broker:
        run("penstock", "topics", "create", "kept", "-b", broker.bootstrap)
    make_log(tmp_path / "data", "orders", 0, 3)
    with PenstockBroker(tmp_path) as broker:
        done = run("penstock", "log", "strays", "restore", "orders", "-b", broker.bootstrap)
        assert "1 partition, 1 replica each" in done.err
        assert "counted from the strays of broker 1" in done.err
        assert "When a broker comes back that has more, restore again" in done.err
    make_log(tmp_path / "data", "orders", 1, 5, epoch=6)
    with PenstockBroker(tmp_path) as broker:
        done = run("penstock", "log", "strays", "restore", "orders", "-b", broker.bootstrap, "-o", "json")
        restored = json.loads(done.out)
        assert (restored["first_partition"], restored["end_offsets"]) == (1, [5])
        consumed = run("penstock", "consume", "orders", "--from-beginning", "-n", "8", "-b", broker.bootstrap)
        assert len(consumed.out.splitlines()) == 8
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("orders", b"record", partition=1)
        assert producer.flush(PATIENCE_S) == 0
        assert run("penstock", "log", "strays", "list", "-b", broker.bootstrap).err == "No strays.\n"
    epochs = (tmp_path / "data" / "orders-1" / "leader-epoch-checkpoint").read_text().split("\n")
    assert epochs[:4] == ["0", "2", "6 0", "7 5"]


def test_a_topic_is_restored_under_another_name(strays: Run) -> None:
    assert strays("restore", id_text(ORDERS_ID), "--as", "rescued").code == 0
    assert strays("list", "-o", "json").out == "[]\n"


def test_all_that_the_cluster_lacks_is_restored(strays: Run, run: Run, broker: PenstockBroker) -> None:
    done = strays("restore", "--all")
    assert "orders is a topic again: 2 partitions, 1 replica each" in done.err
    assert done.code == 0
    assert strays("restore", "--all").err == "There is nothing to restore.\n"
    refused = strays("restore", "--all", "--as", "other")
    assert (refused.code, refused.err.count("\n")) == (1, 1)


def test_what_cannot_be_restored_does_not_keep_the_rest(tmp_path: Path, run: Run) -> None:
    with PenstockBroker(tmp_path) as broker:
        run("penstock", "topics", "create", "kept", "-b", broker.bootstrap)
    make_log(tmp_path / "data", "orders", 1, 5)
    make_log(tmp_path / "data", "bills", 0, 3, topic_id=BILLS_ID)
    with PenstockBroker(tmp_path) as broker:
        done = run("penstock", "log", "strays", "restore", "--all", "-b", broker.bootstrap, "-o", "json")
    told = json.loads(done.out)
    assert [one["topic"] for one in told["restored"]] == ["bills"]
    assert "no broker has a stray of partition 0 of orders" in told["problems"]["orders"]
    assert done.code == 1


def test_offsets_that_were_made_anew_meanwhile_give_way_to_the_old_ones(tmp_path: Path, run: Run) -> None:
    options = {"offsets.topic.num.partitions": "2"}
    store, copy = tmp_path / "data" / FILE_NAME, tmp_path / "copy"
    with PenstockBroker(tmp_path, options=options) as broker:
        run("penstock", "topics", "create", "kept", "-b", broker.bootstrap)
    shutil.copyfile(store, copy)
    with PenstockBroker(tmp_path, options=options) as broker:
        commit(broker, "before", 42)
    shutil.copyfile(copy, store)
    with PenstockBroker(tmp_path, options=options) as broker:
        commit(broker, "meanwhile", 7)
        words = ("penstock", "log", "strays", "restore", "__consumer_offsets", "-b", broker.bootstrap)
        refused = run(*words)
        assert "delete it with penstock topics delete __consumer_offsets" in refused.err
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        run("penstock", "topics", "delete", "__consumer_offsets", "--yes", "-b", broker.bootstrap)
        assert run(*words).code == 0
        assert committed(broker, "before") == 42


def test_a_name_that_is_in_use_is_not_taken(strays: Run) -> None:
    done = strays("restore", "orders", "--as", "kept")
    assert done.code == 1
    assert (
        "another topic is called kept: delete it first, or restore under another name with --as" in done.err
    )
    assert done.err.count("\n") == 1


def test_what_nobody_has_is_said_in_one_line(strays: Run) -> None:
    done = strays("restore", "nothing")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "no broker has a stray of nothing" in done.err


def test_strays_are_removed_while_the_broker_runs(strays: Run, run: Run, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert "say which strays to remove, or --all" in run("penstock", "log", "strays", "remove", data).err
    assert "has no stray other" in run("penstock", "log", "strays", "remove", data, "other").err
    assert run("penstock", "log", "strays", "remove", data, "orders-0").code == 0
    assert [one["partition"] for one in json.loads(strays("list", "-o", "json").out)] == [1]
    assert "removed 1 stray" in run("penstock", "log", "strays", "remove", data, "--all", "--yes").err
    assert json.loads(strays("list", "-o", "json").out) == []


def test_damage_makes_a_cluster_unhealthy(broker: PenstockBroker, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data" / "kept-0" / f"{0:020d}.log"
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for _ in range(3):
        producer.produce("kept", b"record")
        assert producer.flush(PATIENCE_S) == 0
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(bytes(4))
    done = run(
        "penstock", "consume", "kept", "--offset", "2", "-n", "1", "--timeout", "3", "-b", broker.bootstrap
    )
    status = run("penstock", "status", "-b", broker.bootstrap, "-o", "json")
    assert status.code == 1, done
    (damage,) = json.loads(status.out)["damaged"]
    assert (damage["topic"], damage["broker"], damage["offset"]) == ("kept", 1, 2)
    assert str(path) in damage["cause"]
    assert "damaged partitions: 1" in run("penstock", "status", "-b", broker.bootstrap).out


# --- what is planned


def test_strays_of_partitions_that_the_cluster_has_are_not_all_that_is_left() -> None:
    other = bytes(15) + b"1"
    found = [stray(3, 1), stray(3, 2), stray(2, 2), stray(1, 0, topic_id=other)]
    lost, known = by_topic(found, [topic_of("rescued", 2, ORDERS_ID)])
    assert (lost.topic_id, lost.known_as, lost.lost) == (other, None, [0])
    assert (known.known_as, known.lost, known.partitions, known.brokers) == ("rescued", [2], [1, 2], [2, 3])
    assert known.size_bytes == 300
    (whole,) = by_topic(found[:1], [topic_of("orders", 2, ORDERS_ID)])
    assert whole.lost == []


def test_the_replica_that_goes_furthest_leads() -> None:
    found = [stray(1, 0, end=9), stray(2, 0, end=12), stray(3, 0, end=40, epoch=2), stray(1, 1), stray(2, 1)]
    planned = plan(found, "orders", topics=[topic_of("other", 1, bytes(16))])
    assert [sorted(brokers) for brokers in planned.assignments] == [[1, 2, 3], [1, 2]]
    assert planned.leaders == [2, planned.assignments[1][0]]
    assert (planned.leader_epoch, planned.end_offsets, planned.missing) == (4, [12, 10], [])


def test_each_broker_is_the_preferred_leader_of_its_share() -> None:
    topic_ids = [number.to_bytes(16) for number in range(30)]
    strays = [stray(broker, 0, topic_id=topic_id) for topic_id in topic_ids for broker in (1, 2, 3)]
    strays += [stray(broker, partition) for partition in range(30) for broker in (1, 2, 3)]
    single = [plan(strays, id_text(topic_id)) for topic_id in topic_ids]
    assert Counter(one.assignments[0][0] for one in single) == {1: 10, 2: 10, 3: 10}
    assert [one.leaders for one in single] == [one.assignments[0][:1] for one in single]
    large = plan(strays, id_text(ORDERS_ID))
    assert Counter(brokers[0] for brokers in large.assignments) == {1: 10, 2: 10, 3: 10}


def test_a_partition_of_which_nobody_has_a_stray_is_missing() -> None:
    assert plan([stray(1, 2), stray(2, 0)], "orders").missing == [1]


def test_offsets_come_back_before_the_topics() -> None:
    names = ("orders", "__consumer_offsets", "bills")
    found = [
        stray(1, 0, topic_id=bytes(15) + bytes((number,)))._replace(topic=name)
        for number, name in enumerate(names)
    ]
    assert lost_names(by_topic(found)) == ["__consumer_offsets", "bills", "orders"]


def test_an_id_may_be_given_as_the_directory_has_it() -> None:
    assert plan([stray(1, 0)], ORDERS_ID.hex()).topic_id == ORDERS_ID


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([4], "4"), ([0, 1, 2, 5], "0-2, 5"), ([1, 3, 4], "1, 3-4")]
)
def test_ranges_are_short(numbers: list[int], text: str) -> None:
    assert ranges_text(numbers) == text


def test_how_many_partitions_there_were_can_be_said() -> None:
    planned = plan([stray(1, 0), stray(2, 1)], "orders", partitions=3)
    assert [sorted(brokers) for brokers in planned.assignments] == [[1], [2], [1, 2]]
    assert planned.missing == [2]
    with pytest.raises(UserError, match="a stray of partition 1 of orders: it had 2 or more"):
        plan([stray(1, 0), stray(2, 1)], "orders", partitions=1)


def test_a_topic_grows_by_the_partitions_that_it_lacks() -> None:
    topics = [topic_of("orders", 1, bytes(15) + b"1"), topic_of("rescued", 2, ORDERS_ID)]
    planned = plan([stray(3, 1), stray(3, 3, epoch=9), stray(2, 2)], "orders", topics=topics)
    assert (planned.name, planned.first_partition, planned.num_partitions) == ("rescued", 2, 4)
    assert (planned.assignments, planned.leader_epoch) == ([[2], [3]], 10)
    assert planned.brokers == [2, 3]
    assert planned.replicas_text == "1 replica each"


def test_nobody_is_told_to_remove_what_may_be_the_only_copy() -> None:
    with pytest.raises(UserError, match="may hold records that the topic lacks") as refusal:
        plan([stray(3, 1)], "orders", topics=[topic_of("orders", 2, ORDERS_ID)])
    assert "orders-1 on broker 3" in str(refusal.value)
    assert "remove" not in str(refusal.value)


def test_brokers_that_keep_partitions_and_are_not_there_are_named() -> None:
    described = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1)], topics=[topic_of("other", 2, bytes(16), replicas=[1, 3])]
    )
    assert brokers_away(described) == [3]


def test_of_several_topics_of_one_name_the_id_decides() -> None:
    found = [stray(1, 0), stray(1, 0, topic_id=bytes(15) + b"1")]
    with pytest.raises(UserError, match="several topics: give the id"):
        plan(found, "orders")
    assert plan(found, id_text(ORDERS_ID)).topic_id == ORDERS_ID
