"""Records go to the topics of the workers: configs in transactions, by the leader alone; statuses by whoever knows them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.connect.errors import ConnectError
from penstock.connect.state.values import Written, packed
from penstock.connect.tasks.clients import make_producer

if TYPE_CHECKING:
    from confluent_kafka import Producer

log = logging.getLogger("penstock.connect")

TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.1
RETRIES: Final = 5


class Fenced(ConnectError):
    """Another worker leads, and has taken the right to write."""


class ConfigWriter:
    """`claim` takes the right to write from whoever had it. One thread at a time."""

    def __init__(self, settings: Mapping[str, Any], topic: str, transactional_id: str) -> None:
        self._settings = {
            **settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(TIMEOUT_S * 1000),
            "message.timeout.ms": int(TIMEOUT_S * 1000),
            "linger.ms": 0,
            "allow.auto.create.topics": False,
        }
        self._topic = topic
        self._producer: Producer | None = None

    @property
    def has_claimed(self) -> bool:
        return self._producer is not None

    def claim(self) -> None:
        from confluent_kafka import KafkaException

        self.close()
        producer = make_producer(self._settings)
        try:
            producer.init_transactions(TIMEOUT_S)
        except KafkaException as error:
            raise ConnectError(f"the right to write configs cannot be had: {error.args[0].str()}") from None
        self._producer = producer

    def write(self, records: Sequence[Written]) -> int:
        """The offset of the last one. Fenced; ConnectError."""
        from confluent_kafka import KafkaException

        if self._producer is None:
            raise Fenced("this worker does not lead")
        offsets: list[int] = []
        failures: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error.str())
            else:
                offsets.append(message.offset())

        try:
            self._producer.begin_transaction()
            for key, value in records:
                self._producer.produce(
                    self._topic, value=packed(value), key=key.encode(), partition=0, on_delivery=delivered
                )
            self._commit(self._producer)
        except KafkaException as error:
            raise self._failed(error) from None
        if failures or not offsets:
            raise ConnectError(f"writing to {self._topic}: {failures[0] if failures else 'no answer'}")
        return max(offsets)

    def close(self) -> None:
        self._producer = None

    def _commit(self, producer: Producer) -> None:
        from confluent_kafka import KafkaException

        for attempt in range(RETRIES):
            try:
                producer.commit_transaction(TIMEOUT_S)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == RETRIES - 1:
                    raise

    def _failed(self, error: Any) -> ConnectError:
        from confluent_kafka import KafkaError, KafkaException

        cause = error.args[0]
        producer, self._producer = self._producer, None
        if cause.fatal() or cause.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
            return Fenced(f"another worker has taken the right to write configs: {cause.str()}")
        try:
            if producer is not None:
                producer.abort_transaction(TIMEOUT_S)
                self._producer = producer
        except KafkaException as failure:
            log.warning("A transaction could not be taken back: %s", failure.args[0].str())
        return ConnectError(f"writing to {self._topic}: {cause.str()}")


class StatusWriter:
    """In the order in which they come. Threads may share it."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._producer = make_producer({**settings, "linger.ms": 0, "allow.auto.create.topics": False})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="penstock-connect-statuses", daemon=True)
        self._thread.start()

    def write(self, records: Sequence[Written]) -> None:
        for key, value in records:
            try:
                self._producer.produce(self._topic, value=packed(value), key=key.encode(), on_delivery=_told)
            except BufferError:
                log.warning("Too many statuses wait to be written: that of %s is left out", key)

    def write_and_wait(self, records: Sequence[Written], timeout_s: float) -> list[tuple[int, int]]:
        """Partition and offset of each that has arrived in time."""
        arrived: list[tuple[int, int]] = []
        done = threading.Event()
        left = len(records)

        def delivered(error: Any, message: Any) -> None:
            nonlocal left
            _told(error, message)
            if error is None:
                arrived.append((message.partition(), message.offset()))
            left -= 1
            if left <= 0:
                done.set()

        for key, value in records:
            self._producer.produce(self._topic, value=packed(value), key=key.encode(), on_delivery=delivered)
        if records:
            done.wait(timeout_s)
        return arrived

    def close(self, timeout_s: float) -> None:
        self._producer.flush(timeout_s)
        self._stopped.set()
        self._thread.join(2 * POLL_S)

    def _poll(self) -> None:
        while not self._stopped.is_set():
            if self._producer.poll(POLL_S) == 0:
                time.sleep(0)


def _told(error: Any, message: Any) -> None:
    if error is not None:
        log.warning("A status could not be written: %s", error.str())
