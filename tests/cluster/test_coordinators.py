"""Groups and transactions live on when the broker that coordinates them is killed: another takes over where it was."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import pytest

from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.testing.clusters import create_topic, describe, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import coordinator

PATIENCE_S = 60.0
PARTITIONS = 3
QUIET = {"log_level": 0}


@pytest.fixture
def kill_coordinator(cluster: PenstockCluster) -> Iterator[Callable[[str, str], None]]:
    """Kills the broker that leads the partition of a key, and waits for nothing. Started again when the test is over."""
    killed: list[int] = []

    def kill(topic: str, key: str) -> None:
        killed.append(coordinator(cluster, topic, key))
        cluster.kill(killed[-1])

    yield kill
    for broker_id in killed:
        cluster.start(broker_id)
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))


def new_topic(cluster: PenstockCluster, name: str) -> str:
    create_topic(
        cluster.bootstrap,
        name,
        partitions=PARTITIONS,
        replication_factor=3,
        config={"min.insync.replicas": "2"},
    )
    return name


def write(cluster: PenstockCluster, topic: str, values: range) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **QUIET}
    )
    for value in values:
        producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def read_committed(cluster: PenstockCluster, topic: str) -> list[str]:
    """All that a reader of committed records sees in the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"reader of {topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    places = [
        confluent_kafka.TopicPartition(topic, index, confluent_kafka.OFFSET_BEGINNING)
        for index in range(PARTITIONS)
    ]
    consumer.assign(places)
    values: list[str] = []
    at_end: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(at_end) < PARTITIONS:
        assert time.monotonic() < deadline, "a transaction hangs: the end cannot be read"
        message = consumer.poll(1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append(message.value().decode())
            at_end.discard(message.partition())
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            # The end for this reader is the last stable offset: past it may be what is not decided yet.
            _, high = consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(topic, message.partition()), timeout=PATIENCE_S
            )
            if message.offset() >= high:
                at_end.add(message.partition())
    consumer.close()
    return values


# --- groups


def test_a_group_of_confluent_kafka_goes_on(
    cluster: PenstockCluster, kill_coordinator: Callable[[str, str], None]
) -> None:
    topic = new_topic(cluster, "confluent-group")
    write(cluster, topic, range(300))

    def member() -> confluent_kafka.Consumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "confluent",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                **QUIET,
            }
        )
        consumer.subscribe([topic])
        return consumer

    def read(consumer: confluent_kafka.Consumer, count: int) -> list[int]:
        values: list[int] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < count:
            assert time.monotonic() < deadline, f"only {len(values)} of {count} records"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append(int(message.value()))
        return values

    def commit(consumer: confluent_kafka.Consumer) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                consumer.commit(asynchronous=False)
                return
            except confluent_kafka.KafkaException:
                if time.monotonic() > deadline:
                    raise

    first = member()
    values = read(first, 100)
    commit(first)
    kill_coordinator(CONSUMER_OFFSETS, "confluent")
    values += read(first, 100)
    commit(first)
    first.close()
    second = member()
    values += read(second, 100)
    second.close()
    assert sorted(values) == list(range(300)), "each once: what was committed is not read again"


def test_a_group_of_aiokafka_goes_on(
    cluster: PenstockCluster, kill_coordinator: Callable[[str, str], None]
) -> None:
    topic = new_topic(cluster, "aiokafka-group")
    write(cluster, topic, range(300))

    async def member() -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id="aiokafka",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            retry_backoff_ms=50,
        )
        await consumer.start()
        return consumer

    async def read(consumer: aiokafka.AIOKafkaConsumer, count: int) -> list[int]:
        values: list[int] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(values) < count:
                values.append(int((await consumer.getone()).value))
        return values

    async def commit(consumer: aiokafka.AIOKafkaConsumer) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await consumer.commit()

    async def stop(consumer: aiokafka.AIOKafkaConsumer) -> None:
        """aiokafka lets the cancellation of a fetch from a dead broker out, and leaves its connections open then."""
        try:
            await consumer.stop()
        except asyncio.CancelledError:
            await consumer._client.close()

    async def work() -> list[int]:
        first = await member()
        values = await read(first, 100)
        await commit(first)
        await asyncio.to_thread(kill_coordinator, CONSUMER_OFFSETS, "aiokafka")
        values += await read(first, 100)
        await commit(first)
        await stop(first)
        second = await member()
        values += await read(second, 100)
        await stop(second)
        return values

    assert sorted(asyncio.run(work())) == list(range(300))


# --- transactions


def check_transactions(seen: list[str], *, committed: set[int], aborted: set[int]) -> None:
    """A transaction n has written one record "n" into each partition."""
    counted = Counter(int(value) for value in seen)
    assert committed <= counted.keys(), "a transaction that was committed is lost"
    assert not aborted & counted.keys(), "a transaction that was aborted is seen"
    assert set(counted.values()) == {PARTITIONS}, "each is whole, and there once"


def test_transactions_of_confluent_kafka_go_on(
    cluster: PenstockCluster, kill_coordinator: Callable[[str, str], None]
) -> None:
    topic = new_topic(cluster, "confluent-transactions")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "confluent", **QUIET}
    )
    producer.init_transactions(PATIENCE_S)
    committed: set[int] = set()
    aborted: set[int] = set()
    for number in range(40):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(topic, str(number).encode(), partition=index)
        if number == 20:
            producer.flush(PATIENCE_S)
            kill_coordinator(TRANSACTION_STATE, "confluent")
        if number % 5 == 4:
            producer.abort_transaction(PATIENCE_S)
            aborted.add(number)
        else:
            producer.commit_transaction(PATIENCE_S)
            committed.add(number)
    check_transactions(read_committed(cluster, topic), committed=committed, aborted=aborted)
    assert (len(committed), len(aborted)) == (32, 8)


def test_a_coordinator_that_slept_and_wakes_does_no_harm(cluster: PenstockCluster) -> None:
    topic = new_topic(cluster, "woken")
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "sleeper",
            "socket.timeout.ms": 2_000,
            **QUIET,
        }
    )
    producer.init_transactions(PATIENCE_S)
    committed: set[int] = set()
    for number in range(30):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(topic, str(number).encode(), partition=index)
        if number == 10:
            producer.flush(PATIENCE_S)
            asleep = coordinator(cluster, TRANSACTION_STATE, "sleeper")
            cluster.pause(asleep)
        if number == 20:
            cluster.resume(asleep)
        commit(producer)
        committed.add(number)
    check_transactions(read_committed(cluster, topic), committed=committed, aborted=set())
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))


def test_transactions_of_aiokafka_go_on(
    cluster: PenstockCluster, kill_coordinator: Callable[[str, str], None]
) -> None:
    topic = new_topic(cluster, "aiokafka-transactions")
    committed: set[int] = set()
    aborted: set[int] = set()

    async def work() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            transactional_id="aiokafka",
            transaction_timeout_ms=60_000,
            retry_backoff_ms=50,
        )
        async with asyncio.timeout(3 * PATIENCE_S):
            await producer.start()
            for number in range(40):
                await producer.begin_transaction()
                for index in range(PARTITIONS):
                    await producer.send_and_wait(topic, str(number).encode(), partition=index)
                if number == 20:
                    await asyncio.to_thread(kill_coordinator, TRANSACTION_STATE, "aiokafka")
                if number % 5 == 4:
                    await producer.abort_transaction()
                    aborted.add(number)
                else:
                    await producer.commit_transaction()
                    committed.add(number)
            await producer.stop()

    asyncio.run(work())
    check_transactions(read_committed(cluster, topic), committed=committed, aborted=aborted)


def test_a_program_that_reads_and_writes_in_transactions_does_each_record_once(
    cluster: PenstockCluster, kill_coordinator: Callable[[str, str], None]
) -> None:
    source, target = new_topic(cluster, "copied-from"), new_topic(cluster, "copied-to")
    write(cluster, source, range(200))
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "copier",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **QUIET,
        }
    )
    consumer.subscribe([source])
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "copier",
            "transaction.timeout.ms": 300_000,  # a busy machine may need longer than usual for a kill and what follows
            **QUIET,
        }
    )
    producer.init_transactions(PATIENCE_S)
    copied = batches = 0
    deadline = time.monotonic() + 2 * PATIENCE_S
    while copied < 200:
        assert time.monotonic() < deadline, f"only {copied} records were copied"
        messages = [each for each in consumer.consume(20, timeout=0.5) if each.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(target, message.value(), partition=message.partition())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE_S
            )
            batches += 1
            if batches == 3:
                kill_coordinator(CONSUMER_OFFSETS, "copier")
            commit(producer)
            copied += len(messages)
        except confluent_kafka.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(PATIENCE_S)
            rewind(consumer)
    consumer.close()
    assert sorted(int(value) for value in read_committed(cluster, target)) == list(range(200))


def commit(producer: confluent_kafka.Producer) -> None:
    while True:
        try:
            producer.commit_transaction(PATIENCE_S)
            return
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable():
                raise


def rewind(consumer: confluent_kafka.Consumer) -> None:
    """To what the last transaction has committed."""
    for place in consumer.committed(consumer.assignment(), timeout=PATIENCE_S):
        if place.offset < 0:
            place.offset = confluent_kafka.OFFSET_BEGINNING
        consumer.seek(place)
