"""confluent-kafka, the Python face of librdkafka."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from tests.clients.driver import WAIT_S, NoStartingOffset, Received, Record, Refused

RESET = {"earliest": "earliest", "latest": "latest", "none": "error"}
START = {"earliest": ck.OFFSET_BEGINNING, "latest": ck.OFFSET_END}


class ConfluentDriver:
    name = "confluent"

    def can_send(self, record: Record) -> bool:
        return True

    def producer(
        self,
        bootstrap: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
        batch_bytes: int = 16_384,
        on_error: Callable[[KafkaError], None] | None = None,
        **more: Any,
    ) -> "ConfluentProducer":
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": idempotent,
            "message.max.bytes": max_request_bytes,
            "batch.size": batch_bytes,
            "linger.ms": 1,
            "queue.buffering.max.messages": 1_000_000,
            "error_cb": on_error or (lambda _: None),
            "log_level": 0,
            **more,
        }
        return ConfluentProducer(settings)

    def consumer(
        self,
        bootstrap: str,
        *,
        partitions: Sequence[tuple[str, int]] = (),
        group: str | None = None,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        offset_reset: str = "earliest",
    ) -> "ConfluentConsumer":
        consumer = ck.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or "unused",
                "auto.offset.reset": RESET[offset_reset],
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 300,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
            }
        )
        if partitions:
            # Without a group no coordinator is asked where to begin: one that is just starting may need long for its answer.
            start = ck.OFFSET_INVALID if group else START.get(offset_reset, ck.OFFSET_INVALID)
            consumer.assign([TopicPartition(topic, index, start) for topic, index in partitions])
        else:
            # librdkafka takes a name that begins with ^ for a pattern.
            consumer.subscribe([f"^{pattern}"] if pattern else list(topics))
        return ConfluentConsumer(consumer)


class ConfluentProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = ck.Producer(settings)
        self._answers: list[int | KafkaError | None] = []

    def send(self, topic: str, record: Record) -> None:
        index = len(self._answers)
        self._answers.append(None)

        def answered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            self._answers[index] = error or (-1 if offset is None else offset)

        more: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        try:
            self._producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                on_delivery=answered,
                **more,
            )
        except KafkaException as error:
            raise Refused(error.args[0].code()) from None
        self._producer.poll(0)

    def poll(self) -> None:
        self._producer.poll(0)

    def flush(self, timeout_s: float = WAIT_S) -> list[int]:
        left = self._producer.flush(timeout_s)
        assert left == 0, f"{left} records without an answer within {timeout_s:g} s"
        answers, self._answers = self._answers, []
        offsets = []
        for answer in answers:
            assert answer is not None
            if isinstance(answer, KafkaError):
                raise Refused(answer.code())
            offsets.append(answer)
        return offsets

    def close(self) -> None:
        self._producer.flush(0)


class ConfluentConsumer:
    def __init__(self, consumer: ck.Consumer) -> None:
        self._consumer = consumer

    def poll(self, timeout_s: float) -> list[Received]:
        received = []
        for message in self._consumer.consume(5000, timeout_s):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise NoStartingOffset
                if error.retriable() or error.code() in (
                    KafkaError.UNKNOWN_TOPIC_OR_PART,
                    KafkaError.NOT_COORDINATOR,  # of a cluster that has just started
                    KafkaError._TRANSPORT,
                    KafkaError._ALL_BROKERS_DOWN,
                ):
                    continue
                raise Refused(error.code())
            kind, timestamp_ms = message.timestamp()
            record = Record(
                message.value(),
                message.key(),
                tuple(message.headers() or ()),
                timestamp_ms,
                message.partition(),
            )
            received.append(Received(record, message.topic(), message.offset(), kind - 1))
        return received

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        # A seek is possible once the fetcher of the partition runs.
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                self._consumer.seek(TopicPartition(topic, partition, offset))
                return
            except KafkaException:
                assert time.monotonic() < deadline
                self._consumer.poll(0.01)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int:
        wanted = [TopicPartition(topic, partition, timestamp_ms)]
        (found,) = self._consumer.offsets_for_times(wanted, timeout=WAIT_S)
        return int(found.offset) if found.offset >= 0 else -1

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=WAIT_S)
        return low, high

    def close(self) -> None:
        self._consumer.close()
