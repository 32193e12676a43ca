"""What a source gives to its topics, and the offsets behind it: plainly, or in transactions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.client.librdkafka_calls import retriable_calls
from penstock.connect.errors import ConnectError
from penstock.connect.tasks.clients import make_producer

log = logging.getLogger("penstock.connect")

FULL_WAIT_S: Final = 0.05
FLUSH_SLICE_S: Final = 0.5
OPERATION_TIMEOUT_S: Final = 10.0
PATIENCE_S: Final = 60.0
CLOSE_S: Final = 1.0
TRANSACTION_TIMEOUT_MS: Final = (
    60_000  # what a task that was killed leaves open ends with its successor, or then
)
TRANSACTION_SPARE_MS: Final = 30_000
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})


class NotWritten(ConnectError):
    """The cluster does not take a record."""


class Fenced(ConnectError):
    """Another task of the same name has begun."""


class Writer:
    """At least once. `on_failure` is told of a record that is not delivered (a message of the client, and why), and raises
    where that is not to be. `check` is called while it waits for room, and raises to end that; `progress` while it waits for a
    commit."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        on_failure: Callable[[Any, KafkaError], None],
        check: Callable[[], None],
        progress: Callable[[], None],
        *,
        tells_all: bool = False,
    ) -> None:
        """`tells_all`: deliveries have callbacks, not failures only."""
        self.producer: Producer = make_producer({"delivery.report.only.error": not tells_all, **settings})
        self._on_failure, self._check, self._progress = on_failure, check, progress
        self._failure: Exception | None = None
        self._is_closed = False

    def open(self) -> None:
        pass

    def begin(self) -> None:
        """Before the first record since the last commit."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
        on_delivery: Callable[[Any, Any], None] | None = None,
    ) -> None:
        note = on_delivery or self.note
        place = -1 if partition is None else partition
        # librdkafka takes 0 for no time.
        time_ms = 0 if timestamp_ms is None else timestamp_ms or 1
        named: Any = headers or None
        while True:
            try:
                self.producer.produce(topic, value, key, place, note, note, time_ms, named)
                return
            except BufferError:
                self.wait(FULL_WAIT_S)

    def wait(self, seconds: float) -> None:
        """For deliveries."""
        self.producer.poll(seconds)
        self.check()
        self._check()

    def note(self, error: KafkaError | None, message: Any) -> None:
        """A delivery. What is raised here would be lost."""
        if error is None or self._is_closed or self._failure is not None:
            return
        try:
            self._on_failure(message, error)
        except Exception as failure:
            self._failure = failure

    def check(self) -> None:
        """Raises what made a record fail that was sent before."""
        if self._failure is not None:
            raise self._failure

    def blame(self, error: Exception) -> None:
        """Raises a better word for why a record is not taken, where there is one."""

    def flush(self, timeout_s: float) -> bool:
        """Whether everything is delivered; it stays to be delivered otherwise."""
        deadline_s = time.monotonic() + timeout_s
        while self.producer.flush(min(FLUSH_SLICE_S, max(0.0, deadline_s - time.monotonic()))):
            self.check()
            self._progress()
            if time.monotonic() >= deadline_s:
                return False
        self.check()
        return True

    def commit(self) -> None:
        pass

    def close(self) -> None:
        self._is_closed = True
        try:
            self.producer.purge()
        except KafkaException as error:
            log.debug("%s", error.args[0].str())
        self.producer.flush(CLOSE_S)


class TransactionalWriter(Writer):
    """Exactly once: what is sent between two commits becomes visible together or not at all."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        on_failure: Callable[[Any, KafkaError], None],
        check: Callable[[], None],
        progress: Callable[[], None],
        *,
        transactional_id: str,
        interval_s: float = 0.0,
        tells_all: bool = False,
    ) -> None:
        timeout_ms = max(TRANSACTION_TIMEOUT_MS, int(interval_s * 1000) + TRANSACTION_SPARE_MS)
        timeout_ms = int(settings.get("transaction.timeout.ms", timeout_ms))
        own = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
        }
        super().__init__({**settings, **own}, on_failure, check, progress, tells_all=tells_all)
        self.transactional_id = transactional_id
        self._is_open = False

    def open(self) -> None:
        """Ends what an earlier task of this name left open, and fences it."""
        self._step(lambda: self.producer.init_transactions(OPERATION_TIMEOUT_S), "the first transaction")

    def begin(self) -> None:
        if not self._is_open:
            self._step(self.producer.begin_transaction, "the beginning of a transaction")
            self._is_open = True

    def commit(self) -> None:
        if self._is_open:
            self._step(lambda: self.producer.commit_transaction(OPERATION_TIMEOUT_S), "a transaction")
            self._is_open = False

    def close(self) -> None:
        if self._is_open:
            try:
                self.producer.abort_transaction(OPERATION_TIMEOUT_S)
            except KafkaException as error:
                log.debug("%s", error.args[0].str())  # not ours to end any more; its successor will
        super().close()

    def check(self) -> None:
        try:
            super().check()
        except NotWritten as error:
            self.blame(error)
            raise

    def blame(self, error: Exception) -> None:
        """Fenced where that is why a record is not taken: a record's own error may only be that the client has given up."""
        try:
            self.producer.abort_transaction(OPERATION_TIMEOUT_S)
        except KafkaException as told:
            if told.args[0].code() in FENCED:
                raise Fenced(f"another task uses {self.transactional_id}") from error

    def _step(self, call: Callable[[], object], what: str) -> None:
        try:
            retriable_calls(lambda: self._made(call), what, timeout_s=PATIENCE_S, log=log)
        except KafkaException as error:
            cause = error.args[0]
            if cause.code() in FENCED:
                raise Fenced(f"another task uses {self.transactional_id}") from error
            self.producer.poll(0)
            self.check()
            raise NotWritten(f"{what} of {self.transactional_id} has failed: {cause.str()}") from error

    def _made(self, call: Callable[[], object]) -> object:
        self._progress()
        return call()
