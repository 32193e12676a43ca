"""Programs with two client libraries and their default retries, while every broker is stopped and started once."""

import asyncio
import threading
from collections.abc import Callable

import aiokafka
import confluent_kafka

from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import QUIET, WAIT_S, SteadyProducer, wait_for_leader
from tests.crash.plain_client import read_all

PARTITIONS = 3
PAUSE_S = 0.005  # between two records, so that the load is steady and not heavy


class Program(threading.Thread):
    """Sends numbers, one acknowledged after the other, until it is told to end."""

    def __init__(self, send_all: "SendAll", bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True, name=topic)
        self._send_all = send_all
        self.bootstrap, self.topic = bootstrap, topic
        self.ends = threading.Event()
        self.acknowledged: list[bytes] = []
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            self._send_all(self)
        except Exception as error:
            self.errors.append(repr(error))

    def next_value(self) -> bytes:
        return b"%d" % len(self.acknowledged)

    def next_partition(self) -> int:
        return len(self.acknowledged) % PARTITIONS


SendAll = Callable[[Program], None]


def with_confluent_kafka(program: Program) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": program.bootstrap, "acks": "all", "log_level": 0}
    )

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            program.errors.append(str(error))
        else:
            program.acknowledged.append(message.value() or b"")

    while not program.ends.wait(PAUSE_S):
        producer.produce(
            program.topic, program.next_value(), partition=program.next_partition(), on_delivery=delivered
        )
        if producer.flush(WAIT_S):
            program.errors.append("no answer")


def with_aiokafka(program: Program) -> None:
    async def send_all() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=program.bootstrap, acks="all", enable_idempotence=True
        )
        await producer.start()
        while not program.ends.is_set():
            value = program.next_value()
            await producer.send_and_wait(program.topic, value, partition=program.next_partition())
            program.acknowledged.append(value)
            await asyncio.sleep(PAUSE_S)
        await producer.stop()

    asyncio.run(send_all())


LIBRARIES = {"confluent": with_confluent_kafka, "aiokafka": with_aiokafka}


class GroupMember(threading.Thread):
    """Reads a topic in a group with the defaults of librdkafka."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True, name="member")
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"group-{topic}",
                "auto.offset.reset": "earliest",
                **QUIET,
            }
        )
        self._consumer.subscribe([topic])
        self.ends = threading.Event()
        self.seen: set[bytes] = set()
        self.errors: list[str] = []

    def run(self) -> None:
        while not self.ends.is_set():
            for message in self._consumer.consume(500, timeout=0.2):
                if (error := message.error()) is not None:
                    self.errors.append(str(error))
                else:
                    self.seen.add(message.value() or b"")
        self._consumer.close()


def test_no_client_sees_an_error_in_a_rolling_restart(cluster: PenstockCluster, topic_name: str) -> None:
    topics = {library: f"{topic_name}-{library}" for library in LIBRARIES}
    for topic in topics.values():
        create_topic(cluster.bootstrap, topic, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, list(topics.values()))
    programs = [Program(LIBRARIES[library], cluster.bootstrap, topic) for library, topic in topics.items()]
    member = GroupMember(cluster.bootstrap, topics["confluent"])
    for each in (*programs, member):
        each.start()

    def wait_for_more() -> None:
        counts = {program: len(program.acknowledged) for program in programs}
        for program, count in counts.items():
            wait_until(
                lambda: bool(program.errors) or len(program.acknowledged) > count + 20,  # noqa: B023
                f"the progress of {program.topic}",
            )

    wait_for_more()
    for broker_id in cluster.broker_ids:
        cluster.stop(broker_id)
        wait_for_more()
        cluster.start(broker_id)
        wait_until_in_sync(cluster.bootstrap, list(topics.values()))
        wait_for_more()
    for program in programs:
        program.ends.set()
        program.join(WAIT_S)
    wait_until(lambda: member.seen >= set(programs[0].acknowledged), "every record for the group")
    member.ends.set()
    member.join(WAIT_S)
    assert {program.topic: program.errors for program in programs} == {topic: [] for topic in topics.values()}
    assert member.errors == []
    for program in programs:
        stored = [read_all(cluster.bootstrap, program.topic, partition=index) for index in range(PARTITIONS)]
        assert set(program.acknowledged) <= {value for values in stored for value in values}


def test_records_are_whole_and_in_order_after_leaders_were_killed(
    cluster: PenstockCluster, topic_name: str
) -> None:
    create_topic(cluster.bootstrap, topic_name, assignment=[[1, 2, 3]], config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with SteadyProducer(cluster.bootstrap, topic_name) as producer:
        for leader in (1, 2):
            producer.wait_for_more()
            cluster.kill(leader)
            wait_for_leader(cluster, topic_name, other_than=leader)
            producer.wait_for_more()
            cluster.start(leader)
            wait_until_in_sync(cluster.bootstrap, [topic_name])
        sent = producer.finish()
    assert read_all(cluster.bootstrap, topic_name) == sent
