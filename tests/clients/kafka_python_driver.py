"""kafka-python: everything in Python, blocking calls."""

import logging
import warnings
from collections.abc import Sequence
from typing import Any

with warnings.catch_warnings():
    # It reads its message schemas in a way that newer Pythons frown at; that is its own affair.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import BrokerResponseError, NoOffsetForPartitionError

from tests.clients.driver import WAIT_S, NoStartingOffset, Received, Record, Refused

# pytest keeps log records with the connections they speak of, and so sockets that kafka-python has done with.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class KafkaPythonDriver:
    name = "kafka_python"

    def can_send(self, record: Record) -> bool:
        has_null_header = any(value is None for _, value in record.headers)
        return not has_null_header and (record.key is not None or record.value is not None)

    def producer(
        self,
        bootstrap: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
        batch_bytes: int = 16_384,
    ) -> "KafkaPythonProducer":
        return KafkaPythonProducer(
            KafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=-1 if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=max_request_bytes,
                batch_size=batch_bytes,
                linger_ms=1,
                max_block_ms=WAIT_S * 1000,
                reconnect_backoff_max_ms=200,
            )
        )

    def consumer(
        self,
        bootstrap: str,
        *,
        partitions: Sequence[tuple[str, int]] = (),
        group: str | None = None,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        offset_reset: str = "earliest",
    ) -> "KafkaPythonConsumer":
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset=offset_reset,
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=500,
            reconnect_backoff_max_ms=200,
        )
        if partitions:
            consumer.assign([TopicPartition(topic, index) for topic, index in partitions])
        elif pattern:
            consumer.subscribe(pattern=f"^{pattern}")
        else:
            consumer.subscribe(list(topics))
        return KafkaPythonConsumer(consumer)


def keep_joining(consumer: KafkaConsumer) -> None:
    """To be called after each poll: kafka-python 3.0.12 forgets an assignment that comes after the poll that asked for it.

    A leader joins again when its topics have changed. If the poll ends before the group has answered, it no longer sees a
    change: the answer, once there, is taken by nobody, and the member has no partitions for ever.
    """
    if consumer._coordinator._join_task is not None:
        consumer._coordinator.request_rejoin()


class KafkaPythonProducer:
    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer
        self._answers: list[Any] = []

    def send(self, topic: str, record: Record) -> None:
        try:
            future = self._producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
        except BrokerResponseError as error:
            raise Refused(error.errno) from None
        self._answers.append(future)

    def flush(self, timeout_s: float = WAIT_S) -> list[int]:
        self._producer.flush(timeout_s)
        answers, self._answers = self._answers, []
        try:
            return [future.get(timeout_s).offset for future in answers]
        except BrokerResponseError as error:
            raise Refused(error.errno) from None

    def close(self) -> None:
        self._producer.close(timeout=WAIT_S)


class KafkaPythonConsumer:
    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def poll(self, timeout_s: float) -> list[Received]:
        try:
            by_partition = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except NoOffsetForPartitionError:
            raise NoStartingOffset from None
        keep_joining(self._consumer)
        return [
            Received(
                Record(each.value, each.key, tuple(each.headers), each.timestamp, each.partition),
                each.topic,
                each.offset,
                each.timestamp_type,
            )
            for records in by_partition.values()
            for each in records
        ]

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(topic, partition), offset)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int:
        where = TopicPartition(topic, partition)
        found = self._consumer.offsets_for_times({where: timestamp_ms})[where]
        return -1 if found is None else int(found.offset)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        return self._consumer.beginning_offsets([where])[where], self._consumer.end_offsets([where])[where]

    def close(self) -> None:
        self._consumer.close(autocommit=False)
