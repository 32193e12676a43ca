"""Writing what handlers returned: plainly, or in a transaction together with the offsets of what was read.

Both writers leave a `refusal` on a unit whose output can never be written (too large, for example), and raise an error in all
other cases.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from penstock.client.librdkafka_calls import retriable_calls
from penstock.consumer.failures import DeadLetterNotWritten, Fenced, OutputNotWritten, Stopped
from penstock.consumer.handling import Unit
from penstock.consumer.hanging_calls import LeftBehind, StillRunning, call_within
from penstock.consumer.record import Output, Place

log = logging.getLogger("penstock.consumer")

DELIVERY_TIMEOUT_MS = 120_000
# A transaction is never open while a handler works, so it can be short; what a killed processor leaves open goes as soon.
TRANSACTION_TIMEOUT_MS = 30_000
# What is asked of a broker that vanished is given up before the transaction is over: else the next coordinator ends that, and the
# processor is fenced.
SOCKET_TIMEOUT_MS = 10_000
OPERATION_TIMEOUT_S = 10.0  # one call; it is made again while the broker says that it may help
SEND_TIMEOUT_S, SEND_GRACE_S = 5.0, 1.0
PATIENCE_S = 150.0  # all calls of one step together

PRODUCER_SETTINGS = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "partitioner": "murmur2_random",
    "linger.ms": 0,
    "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    "message.max.bytes": 1_000_000_000,  # the topic decides what is too large
}

# The record is to blame, not the cluster: every other record can still be written.
REFUSALS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
    }
)
# These are final. Other errors are retriable: the transaction can be tried again.
HOPELESS = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
    }
)
FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)


class Aborted(Exception):
    """The transaction is undone; the same units may be tried again."""


class Deliveries:
    """Hands outputs to a producer and learns what became of them."""

    def __init__(self, producer: Producer, *, alone: bool) -> None:
        self._producer = producer
        self._alone = alone
        self.failed: list[tuple[Unit, Output, KafkaError]] = []
        self.refused: list[tuple[Unit, Output]] = []
        """What the broker has not written, and would not write in the company that it came in."""

    def produce(self, units: Sequence[Unit]) -> None:
        """Each output in a batch of its own if `alone`: a broker that refuses a batch does not say for which record.

        Then it ends at the first that is refused: within a transaction nothing can follow.
        """
        for unit in units:
            unit.refusal = None
            for output in unit.outputs:
                self._produce(unit, output)
                if self._alone:
                    self.flush()
                if unit.refusal is not None and self._alone:
                    return

    def produce_again(self, refused: Sequence[tuple[Unit, Output]]) -> None:
        """Only these, each alone: the other outputs of their units are written already."""
        for unit, _ in refused:
            unit.refusal = None
        for unit, output in refused:
            if unit.refusal is None:
                self._produce(unit, output)
                self.flush()

    def flush(self) -> None:
        # Everything is delivered or has failed by then: message.timeout.ms sees to that.
        deadline_s = time.monotonic() + PATIENCE_S
        while self._producer.flush(1.0):
            if time.monotonic() > deadline_s:
                raise OutputNotWritten("the cluster does not acknowledge what is written")

    def _produce(self, unit: Unit, output: Output) -> None:
        extra: dict[str, Any] = {}
        if output.partition is not None:
            extra["partition"] = output.partition
        if output.timestamp_ms is not None:
            extra["timestamp"] = output.timestamp_ms
        while True:
            try:
                self._producer.produce(
                    output.topic,
                    value=output.value,
                    key=output.key,
                    headers=list(output.headers) or None,
                    on_delivery=lambda error, message: self._delivered(unit, output, error),
                    **extra,
                )
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._delivered(unit, output, error.args[0])
                return
            except (TypeError, ValueError) as error:
                unit.refusal = error
                self.refused.append((unit, output))
                return

    def _delivered(self, unit: Unit, output: Output, error: KafkaError | None) -> None:
        if error is None:
            return
        if error.code() in REFUSALS:
            unit.refusal = OutputNotWritten(f"{output.topic} refuses an output: {error.str()}")
            self.refused.append((unit, output))
        else:
            self.failed.append((unit, output, error))

    @property
    def are_complete(self) -> bool:
        """Nothing is known to have failed, so far."""
        return not self.failed and not self.refused

    @property
    def why_not_complete(self) -> str:
        return self.failed[0][2].str() if self.failed else "an output can never be written"

    def check(self, *, only: frozenset[int] | None = None) -> None:
        """Raises for what is not a unit's own fault."""
        for unit, output, error in self.failed:
            if only is None or error.code() in only:
                raise _not_written(unit, output.topic, error.str())


def _not_written(unit: Unit, topic: str, reason: str) -> Stopped:
    if unit.is_dead_letter:
        return DeadLetterNotWritten(f"the dead letter topic {topic} cannot be written to: {reason}")
    return OutputNotWritten(f"the topic {topic} cannot be written to: {reason}")


def _check_dead_letters(units: Sequence[Unit]) -> None:
    """There is nowhere to put a dead letter that is refused."""
    for unit in units:
        if unit.is_dead_letter and unit.refusal is not None:
            raise _not_written(unit, unit.outputs[0].topic, str(unit.refusal)) from unit.refusal


def _close(producer: Producer) -> None:
    """Without what could not be written: that was told, or is not meant to be written any more."""
    try:
        # No flush: after a fatal error the binding raises from within the callbacks that it would call.
        producer.purge()
    except KafkaException as error:
        log.debug("%s", error.args[0].str())


class PlainWriter:
    """Outputs first; the offsets are committed by whoever asked, once they are all acknowledged."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**PRODUCER_SETTINGS, **settings}
        self._producer: Producer | None = None

    def write(self, units: Sequence[Unit]) -> None:
        written = [unit for unit in units if unit.outputs]
        if not written:
            return
        if self._producer is None:
            self._producer = Producer(self._settings, logger=log.getChild("client"))
        first = Deliveries(self._producer, alone=False)
        first.produce(written)
        first.flush()
        first.check()
        if first.refused:
            second = Deliveries(self._producer, alone=True)
            second.produce_again(first.refused)
            second.check()
        _check_dead_letters(written)

    def close(self) -> None:
        if self._producer is not None:
            _close(self._producer)


class TransactionalWriter:
    """Outputs, dead letters and offsets become visible together, or not at all."""

    def __init__(self, settings: Mapping[str, Any], transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._alone = False  # an output was refused, and it is to be found out which
        self._settings = {
            **PRODUCER_SETTINGS,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "socket.timeout.ms": SOCKET_TIMEOUT_MS,
            **settings,
            "transactional.id": transactional_id,
        }
        self._left_behind = LeftBehind()
        self._producer = Producer(self._settings, logger=log.getChild("client"))

    def open(self) -> None:
        """Ends what an earlier processor of this name left open, and shuts it out."""
        try:
            _patiently(lambda: self._producer.init_transactions(OPERATION_TIMEOUT_S), "the first transaction")
        except KafkaException as error:
            raise Stopped(f"transactions are not possible: {error.args[0].str()}") from error

    def write(self, units: Sequence[Unit], offsets: Mapping[Place, int], group_metadata: Any) -> None:
        """Aborted when nothing was done and trying again may help."""
        positions = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        try:
            self._write(units, positions, group_metadata)
        except Aborted:
            if not self._alone and any(unit.refusal is not None for unit in units):
                # Perhaps only for the company it was in: the next attempt will tell.
                self._alone = True
                for unit in units:
                    unit.refusal = None
            raise
        self._alone = False

    def _write(self, units: Sequence[Unit], positions: list[TopicPartition], group_metadata: Any) -> None:
        deliveries = Deliveries(self._producer, alone=self._alone)
        try:
            self._producer.begin_transaction()
            deliveries.produce(units)
            if not deliveries.are_complete:
                # What the client refused at once never became part of the transaction, which it would commit without.
                self._abort()
                deliveries.check(only=HOPELESS)
                raise Aborted(deliveries.why_not_complete)
            self._send_offsets(positions, group_metadata)
            _patiently(lambda: self._producer.commit_transaction(OPERATION_TIMEOUT_S), "a transaction")
        except KafkaException as error:
            self._failed(error.args[0])
            deliveries.check(only=HOPELESS)
            raise Aborted(error.args[0].str()) from error
        finally:
            if self._alone:
                _check_dead_letters(units)

    def close(self) -> None:
        _close(self._producer)

    def _send_offsets(self, positions: list[TopicPartition], group_metadata: Any) -> None:
        producer = self._producer
        try:
            _patiently(
                lambda: call_within(
                    lambda: producer.send_offsets_to_transaction(positions, group_metadata, SEND_TIMEOUT_S),
                    SEND_TIMEOUT_S + SEND_GRACE_S,
                ),
                "offsets in a transaction",
            )
        except StillRunning as hanging:
            self._leave_behind(hanging.thread)
            raise Aborted("the client did not answer while it sent offsets") from hanging

    def _leave_behind(self, thread: threading.Thread) -> None:
        """Goes on with another producer of the same id: that ends the open transaction, and fences the old one."""
        if not self._left_behind.add(thread):
            raise Stopped(
                f"the client did not answer several times in transactions of '{self.transactional_id}'"
            )
        self._producer = Producer(self._settings, logger=log.getChild("client"))
        self.open()

    def _failed(self, error: KafkaError) -> None:
        """Aborts if that is the way out; raises if there is none."""
        if error.code() in FENCED:
            raise Fenced(
                f"another processor with the transactional id '{self.transactional_id}' has begun: "
                "give each processor of a group an `instance` name of its own"
            ) from KafkaException(error)
        if not error.txn_requires_abort():
            raise Stopped(f"transactions cannot continue: {error.str()}") from KafkaException(error)
        self._abort()

    def _abort(self) -> None:
        try:
            _patiently(
                lambda: self._producer.abort_transaction(OPERATION_TIMEOUT_S), "the end of a transaction"
            )
        except KafkaException as error:
            self._failed_abort(error.args[0])

    def _failed_abort(self, error: KafkaError) -> None:
        if error.code() in FENCED:
            raise Fenced(
                f"'{self.transactional_id}' was taken over by another processor"
            ) from KafkaException(error)
        raise Stopped(f"a transaction cannot be ended: {error.str()}") from KafkaException(error)


def _patiently(step: Callable[[], object], what: str) -> None:
    retriable_calls(step, what, timeout_s=PATIENCE_S, log=log)
