"""Clients whose work can be checked: records that count up, and all that happens told as events with Kafka's names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.client.clients import Connection, translated
from penstock.client.error_names import full_exception_name
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.record_sender import send
from penstock.load.clients import (
    MAX_RECORDS,
    POLL_S,
    PRODUCER_DEFAULTS,
    ClientErrors,
    flush,
    poll_batch,
    reason,
)
from penstock.load.measuring import Throughput
from penstock.model.ids import TopicPartition

ENDLESS = -1
UNKNOWN_OFFSET = -1
CLIENT_EXCEPTION = "org.apache.kafka.common.KafkaException"
Tell = Callable[..., object]
"""The name of an event, and its fields by name."""


class ProducerPlan(NamedTuple):
    topic: str
    max_messages: int
    throughput: float
    create_time_ms: int | None
    prefix: int | None
    repeating_keys: int | None


class ConsumerPlan(NamedTuple):
    topic: str
    max_messages: int
    is_verbose: bool
    commits: bool


class CountingProducer:
    """Sends numbers that count up, and tells of each what became of it."""

    def __init__(
        self,
        connection: Connection,
        plan: ProducerPlan,
        *,
        tell: Tell,
        complain: Callable[[str], object],
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._sent = 0
        self._acked = 0
        self._tell_event = tell
        self._is_over = is_over
        self._errors = ClientErrors(complain)
        self._producer = connection.producer(
            PRODUCER_DEFAULTS, error_cb=self._errors, on_delivery=self._on_delivery
        )

    def run(self) -> int:
        """How many records were not acknowledged."""
        self._tell_event("startup_complete")
        self._started_s = time.monotonic()
        try:
            self._send_all()
        finally:
            flush(self._producer, lambda: self._errors.is_fatal)
            self._end()
        self._errors.check()
        return self._sent - self._acked

    def _send_all(self) -> None:
        pace = Throughput(self._plan.throughput)
        while self._plan.max_messages == ENDLESS or self._sent < self._plan.max_messages:
            pace.wait(self._sent, self._producer.poll, self._is_over)
            self._errors.check()
            if self._is_over():
                return
            self._send()
            self._producer.poll(0)

    def _send(self) -> None:
        from confluent_kafka import KafkaException

        plan, number = self._plan, self._sent
        value = str(number) if plan.prefix is None else f"{plan.prefix}.{number}"
        key = None if plan.repeating_keys is None else str(number % plan.repeating_keys)
        record: dict[str, Any] = {"value": value, "key": key}
        if plan.create_time_ms is not None:
            record["timestamp"] = plan.create_time_ms + int((time.monotonic() - self._started_s) * 1000)
        self._sent += 1
        try:
            send(self._producer, plan.topic, **record)
        except KafkaException as error:
            cause = translated(error)
            name = cause.exception_name if isinstance(cause, Refused) else CLIENT_EXCEPTION
            self._tell_failure(key, value, name, str(cause))
            if isinstance(cause, Unreachable):
                raise cause from None

    def _end(self) -> None:
        self._tell_event("shutdown_complete")
        elapsed_s = time.monotonic() - self._started_s
        target = self._plan.throughput
        self._tell_event(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=int(target) if target == int(target) else target,
            avg_throughput=self._acked / elapsed_s if elapsed_s else 0.0,
        )

    def _on_delivery(self, error: Any, message: Any) -> None:
        key, value = text_of(message.key()), text_of(message.value())
        if error is None:
            self._acked += 1
            self._tell_event(
                "producer_send_success",
                key=key,
                value=value,
                offset=UNKNOWN_OFFSET if message.offset() is None else message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            name = full_exception_name(error.code()) if error.code() > 0 else CLIENT_EXCEPTION
            self._tell_failure(key, value, name, reason(error))

    def _tell_failure(self, key: str | None, value: str | None, exception: str, message: str) -> None:
        self._tell_event(
            "producer_send_error",
            topic=self._plan.topic,
            key=key,
            value=value,
            exception=f"class {exception}",
            message=message,
        )


class CountingConsumer:
    """A member of a group that tells all that happens to it."""

    def __init__(
        self,
        connection: Connection,
        defaults: dict[str, str],
        plan: ConsumerPlan,
        *,
        tell: Tell,
        complain: Callable[[str], object],
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._consumed = 0
        self._tell_event = tell
        self._is_over = is_over
        self._errors = ClientErrors(complain)
        self._consumer = connection.consumer(defaults, error_cb=self._errors)

    def run(self) -> None:
        self._tell_event("startup_complete")
        self._consumer.subscribe(
            [self._plan.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )
        try:
            self._consume()
        finally:
            if self._is_over():
                self._tell_event("shutdown_requested")
            self._consumer.close()
            self._tell_event("shutdown_complete")
        if not self._is_over():
            self._tell_event("shutdown_requested")

    def _consume(self) -> None:
        plan = self._plan
        while not self._is_over() and (plan.max_messages == ENDLESS or self._consumed < plan.max_messages):
            wanted = MAX_RECORDS if plan.max_messages == ENDLESS else plan.max_messages - self._consumed
            records = []
            for message in poll_batch(self._consumer, POLL_S, wanted):
                if message.error() is None:
                    records.append(message)
                else:
                    self._on_error(message.error())
            self._errors.check()
            if records:
                self._tell(records)

    def _on_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise UserError(
                f"the group has no offset to begin with, and --reset-policy is none: {error.str()}"
            )
        self._errors(error)

    def _tell(self, records: list[Any]) -> None:
        self._consumed += len(records)
        offsets: dict[TopicPartition, list[int]] = {}
        for record in records:
            partition = TopicPartition(record.topic(), record.partition())
            offsets.setdefault(partition, []).append(record.offset())
            if self._plan.is_verbose:
                self._tell_event(
                    "record_data",
                    key=text_of(record.key()),
                    value=text_of(record.value()),
                    topic=record.topic(),
                    partition=record.partition(),
                    offset=record.offset(),
                )
        self._tell_event(
            "records_consumed",
            count=len(records),
            partitions=[
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "count": len(each),
                    "minOffset": min(each),
                    "maxOffset": max(each),
                }
                for partition, each in offsets.items()
            ],
        )
        if self._plan.commits:
            self._commit({partition: max(each) + 1 for partition, each in offsets.items()})

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        import confluent_kafka

        failure: dict[str, str] = {}
        try:
            self._consumer.commit(
                offsets=[
                    confluent_kafka.TopicPartition(one.topic, one.partition, offset)
                    for one, offset in offsets.items()
                ],
                asynchronous=False,
            )
        except confluent_kafka.KafkaException as error:
            cause = translated(error)
            if isinstance(cause, Unreachable):
                raise cause from None
            failure = {"error": str(cause)}
        told = [
            {"topic": one.topic, "partition": one.partition, "offset": offset}
            for one, offset in offsets.items()
        ]
        self._tell_event("offsets_committed", offsets=told, **failure, success=not failure)

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self._tell_event("partitions_assigned", partitions=_listed(partitions))

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        self._tell_event("partitions_revoked", partitions=_listed(partitions))


def _listed(partitions: list[Any]) -> list[dict[str, Any]]:
    return [{"topic": one.topic, "partition": one.partition} for one in partitions]


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
