"""Sends records as fast as asked, and tells how fast and how late they were acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.client.clients import Connection, translated
from penstock.client.record_sender import send
from penstock.load.clients import (
    PRODUCER_DEFAULTS,
    STATISTICS_SETTINGS,
    ClientErrors,
    ClientStatistics,
    flush,
    reason,
)
from penstock.load.measuring import Payload, Throughput
from penstock.load.statistics import SendStatistics

POLL_EVERY_RECORDS = 100
DELIVERY_TIMEOUT_MS = "120000"
TRANSACTION_TIMEOUT_S = 60.0
# Java's producer, on whose behaviour people's numbers rest: small batches, no more than 32 MiB under way.
DEFAULTS = {
    "linger.ms": "5",
    "batch.size": "16384",
    "queue.buffering.max.kbytes": "32768",
    **PRODUCER_DEFAULTS,
    **STATISTICS_SETTINGS,
}


class SendPlan(NamedTuple):
    topic: str
    records: int
    throughput: float
    payload: Payload
    warmup: int
    interval_s: float
    transaction_s: float | None


class _Transactions:
    """One after the other, each for so long."""

    def __init__(self, producer: Any, duration_s: float) -> None:
        self._producer = producer
        self._duration_s = duration_s
        self._started_s: float | None = None
        producer.init_transactions(TRANSACTION_TIMEOUT_S)

    def before_record(self) -> None:
        if self._started_s is None:
            self._producer.begin_transaction()
            self._started_s = time.monotonic()

    def after_record(self) -> None:
        if self._started_s is not None and time.monotonic() - self._started_s >= self._duration_s:
            self.commit()

    def commit(self) -> None:
        if self._started_s is not None:
            self._producer.commit_transaction(TRANSACTION_TIMEOUT_S)
            self._started_s = None


class Sender:
    """One run of a plan. `say` gets the lines for people, `complain` what went wrong."""

    def __init__(
        self,
        connection: Connection,
        plan: SendPlan,
        *,
        say: Callable[[str], object],
        complain: Callable[[str], object],
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._say = say
        self._is_stopped = is_over
        self._errors = ClientErrors(complain)
        self._failed = 0
        self._metrics = ClientStatistics()
        self._is_idempotent = connection.properties.get("enable.idempotence") == "true"
        # With transactions their own timeout bounds this one.
        is_transactional = plan.transaction_s is not None
        defaults = DEFAULTS if is_transactional else {**DEFAULTS, "message.timeout.ms": DELIVERY_TIMEOUT_MS}
        self._producer = connection.producer(
            defaults, error_cb=self._errors, on_delivery=self._on_delivery, stats_cb=self._metrics
        )

    def run(self) -> int:
        """How many records were not acknowledged."""
        from confluent_kafka import KafkaException

        try:
            left = self._send_all()
        except KafkaException as error:
            raise translated(error) from None
        self._statistics.summarise()
        return left + self._failed

    def metrics(self) -> list[str]:
        """What the client counted, as lines."""
        return self._metrics.lines(self._producer.poll)

    def _send_all(self) -> int:
        """How many records have no answer in the end. After a signal nothing is waited for."""
        plan, producer = self._plan, self._producer
        transactions = None if plan.transaction_s is None else _Transactions(producer, plan.transaction_s)
        if transactions is None and self._is_idempotent:
            self._metrics.await_producer_id(producer.poll)
        if plan.warmup:
            self._say(
                f"Warmup first {plan.warmup} records. Steady state results will print after the complete test summary."
            )
        self._statistics = SendStatistics(
            plan.records, warmup=plan.warmup, interval_s=plan.interval_s, say=self._say
        )
        pace = Throughput(plan.throughput)
        for number in range(plan.records):
            pace.wait(number, self._pause, self._is_stopped)
            if self._is_stopped():
                return 0
            if transactions is not None:
                transactions.before_record()
            send(producer, plan.topic, value=plan.payload(number))
            if number % POLL_EVERY_RECORDS == 0:
                self._pause(0)
            if transactions is not None:
                transactions.after_record()
        if transactions is not None:
            transactions.commit()
        return flush(producer, self._is_over)

    def _pause(self, pause_s: float) -> None:
        self._producer.poll(pause_s)
        self._statistics.report()
        self._errors.check()

    def _is_over(self) -> bool:
        self._statistics.report()
        self._errors.check()
        return self._is_stopped()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is None:
            self._statistics.add(len(message), (message.latency() or 0.0) * 1000)
        else:
            self._failed += 1
            self._errors.tell(
                f"ERROR Error when sending message to topic {self._plan.topic} with error: {reason(error)}"
            )
