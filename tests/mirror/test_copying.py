"""Who may read a topic may read its copy; a group at work is left alone."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from penstock.admin import Cluster
from penstock.mirror.copying import Copying, dealt
from penstock.mirror.group_offsets import set_offsets
from penstock.mirror.naming import Naming
from penstock.mirror.settings import SOURCE_SETTINGS
from penstock.model.ids import TopicPartition
from tests.clients.admin import create_topic
from tests.conftest import StartBroker
from tests.mirror.conftest import Clusters
from tests.mirror.mirrors import until

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
VALUES = SOURCE_SETTINGS.parse({"source.cluster.alias": "A", "replication.factor": "1"})


@pytest.fixture
def both(start_broker: StartBroker) -> Iterator[tuple[Cluster, Cluster]]:
    brokers = [start_broker(name=name, options=GUARDED) for name in "AB"]
    with Cluster(brokers[0].bootstrap) as a, Cluster(brokers[1].bootstrap) as b:
        yield a, b


def test_rules_to_read_come_along_and_those_to_write_do_not(both: tuple[Cluster, Cluster]) -> None:
    a, b = both
    a.topics.create("orders", partitions=1)
    a.acls.add("User:ana", ["Read", "Write"], name="orders")
    a.acls.add("User:eve", ["Read"], name="orders", deny=True)
    a.acls.add("User:boss", ["All"], name="orders")
    a.acls.add("User:all", ["Read"], name="ord", is_prefix=True)
    copying = Copying(a, b, Naming("A", "B"), VALUES)
    assert copying.found() == {"orders": 1}
    copying.make(copying.found())
    assert copying.copy_acls(["orders"]) == 3
    assert {(one.principal, one.permission, one.operation, one.resource_name) for one in b.acls.list()} == {
        ("User:ana", "Allow", "Read", "A.orders"),
        ("User:eve", "Deny", "Read", "A.orders"),
        ("User:boss", "Allow", "Read", "A.orders"),
    }
    assert copying.copy_acls(["orders"]) == 0


def test_a_group_at_work_is_left_alone(clusters: Clusters) -> None:
    create_topic(clusters.b, "busy")
    wanted = {TopicPartition("busy", 0): 5}
    consumer = Consumer({"bootstrap.servers": clusters.b, "group.id": "worker", "log_level": 0})
    with Cluster(clusters.b) as b:
        consumer.subscribe(["busy"])
        until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
        assert set_offsets(b, "worker", wanted) == {}
        consumer.close()
        assert until(lambda: set_offsets(b, "worker", wanted), "the offset") == wanted
        assert set_offsets(b, "worker", {TopicPartition("busy", 0): 3}) == {}
        assert set_offsets(b, "worker", {TopicPartition("busy", 0): 3}, goes_back=True) == {
            TopicPartition("busy", 0): 3
        }


def test_partitions_are_dealt_to_tasks_in_turn() -> None:
    tasks = dealt({"a": 3, "b": 2}, 2)
    assert [list(map(str, one)) for one in tasks] == [["a-0", "a-2", "b-1"], ["a-1", "b-0"]]
    assert dealt({}, 3) == []
    assert len(dealt({"a": 1}, 3)) == 1
