"""Clients for tests of clusters: a producer that never rests, one record straight to one broker, and what a partition holds."""

import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench.raw import produce_error, produce_request, receive_frame, record_batch
from penstock.coordination.placement import partition_for
from penstock.model.errors import ErrorCode
from penstock.testing.clusters import describe, wait_until
from penstock.testing.penstock_cluster import PenstockCluster

WAIT_S = 60.0
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


class SteadyProducer(threading.Thread):
    """Numbered values, n to partition n modulo `partitions`, some hundred a second; idempotent, with the defaults for retries."""

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int = 1, login: Mapping[str, str] | None = None
    ) -> None:
        """`login` is what librdkafka needs to be let in."""
        super().__init__(daemon=True, name="steady producer")
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **QUIET}
        self._producer = Producer({**settings, **(login or {})})
        self._topic = topic
        self._partitions = partitions
        self._ends = threading.Event()
        self.sent: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._ends.wait(0.003):
            value = b"%d" % len(self.sent)
            partition = len(self.sent) % self._partitions
            self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            self.sent.append(value)
            self._producer.poll(0)
        if left := self._producer.flush(WAIT_S):
            self.errors.append(f"{left} records are not acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.append(message.value() or b"")

    def wait_for_more(self, count: int = 20) -> None:
        """Until so many more records have been acknowledged."""
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted or bool(self.errors), "more acknowledgements")
        assert not self.errors

    def finish(self) -> list[bytes]:
        """All that it has sent, which has been acknowledged."""
        self._ends.set()
        self.join(2 * WAIT_S)
        assert not self.errors
        for partition in range(self._partitions):
            acknowledged = [
                value for value in self.acknowledged if int(value) % self._partitions == partition
            ]
            assert acknowledged == self.sent[partition :: self._partitions]
        return self.sent

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self.join(2 * WAIT_S)


def values_in(bootstrap: str, topic: str, partitions: int, login: Mapping[str, str]) -> list[bytes]:
    """All that the topic holds now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **QUIET, **login})
    try:
        places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        count = sum(consumer.get_watermark_offsets(place, timeout=WAIT_S)[1] for place in places)
        consumer.assign(places)
        found: list[bytes] = []

        def has_all() -> bool:
            found.extend(m.value() or b"" for m in consumer.consume(1000, 0.2) if not m.error())
            return len(found) >= count

        wait_until(has_all, "all records")
        return found
    finally:
        consumer.close()


class DirectProducer:
    """Sends single records to one broker, whether it leads or not; the answer is taken when it is wanted."""

    def __init__(self, port: int, *, timeout_s: float = WAIT_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._topics: list[str] = []

    def send(self, topic: str, value: bytes, *, acks: int, timeout_ms: int = 5_000) -> None:
        batch = record_batch(value, timestamp_ms=time.time_ns() // 1_000_000)
        self._socket.sendall(produce_request(topic, batch, acks=acks, timeout_ms=timeout_ms))
        self._topics.append(topic)

    def answer(self) -> ErrorCode:
        return ErrorCode(produce_error(receive_frame(self._socket), self._topics.pop(0)))

    def produce(self, topic: str, value: bytes, *, acks: int = -1, timeout_ms: int = 5_000) -> ErrorCode:
        self.send(topic, value, acks=acks, timeout_ms=timeout_ms)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


def leader_of(bootstrap: str, topic: str) -> int:
    return describe(bootstrap).topics[topic].partitions[0].leader


def isr_of(bootstrap: str, topic: str) -> set[int]:
    return set(describe(bootstrap).topics[topic].partitions[0].isrs)


def coordinator(cluster: PenstockCluster, topic: str, key: str) -> int:
    """The broker that leads the partition of a group or a transactional id."""
    partitions = describe(cluster.bootstrap).topics[topic].partitions
    return int(partitions[partition_for(key, len(partitions))].leader)


def others(cluster: PenstockCluster, broker_id: int) -> list[int]:
    return [each for each in cluster.broker_ids if each != broker_id]


def wait_for_leader(cluster: PenstockCluster, topic: str, *, other_than: int) -> int:
    """Asks the others: one that is paused or cut off would not answer, or not know."""
    bootstrap = ",".join(cluster.address(each) for each in others(cluster, other_than))
    found = -1

    def leads() -> bool:
        # What was found counts: asked once more, another broker may not have heard of it yet.
        nonlocal found
        found = leader_of(bootstrap, topic)
        return found not in (-1, other_than)

    wait_until(leads, "another leader")
    return found
