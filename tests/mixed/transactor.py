"""A transactional producer that never rests, and knows what became of each of its transactions."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

WAIT_S = 60.0
CALL_S = 15.0


class Transactor(threading.Thread):
    """Transaction n writes `n` to each partition; each fifth is aborted. One thread, one transactional id."""

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, name: str = "transactor") -> None:
        super().__init__(daemon=True, name=name)
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._topic = topic
        self._partitions = partitions
        self._ends = threading.Event()
        self._number = 0
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            producer = self._begun()
            while not self._ends.is_set():
                try:
                    self._one(producer)
                except KafkaException as error:
                    if not error.args[0].fatal():
                        raise
                    producer = self._begun()  # what was open is aborted by that
        except Exception as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    def _begun(self) -> Producer:
        producer = Producer(self._settings)
        self._until_done(lambda: producer.init_transactions(CALL_S))
        return producer

    def _one(self, producer: Producer) -> None:
        number = self._number
        self._number += 1
        producer.begin_transaction()
        try:
            for partition in range(self._partitions):
                producer.produce(self._topic, b"%d" % number, partition=partition)
            if number % 5 == 4:
                self._until_done(lambda: producer.abort_transaction(CALL_S))
                self.aborted.append(number)
                return
            self._until_done(lambda: producer.commit_transaction(CALL_S))
            self.committed.append(number)
        except KafkaException as error:
            self.aborted.append(number)
            if error.args[0].txn_requires_abort():
                self._until_done(lambda: producer.abort_transaction(CALL_S))
            else:
                raise

    def _until_done(self, call: object) -> None:
        """Asked again while the answer is that it may be asked again: then it is not known what was done."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                call()  # type: ignore[operator]
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def wait_for_more(self, count: int = 5) -> None:
        wanted, deadline = len(self.committed) + count, time.monotonic() + WAIT_S
        while len(self.committed) < wanted and not self.errors:
            assert time.monotonic() < deadline, "no transactions are committed"
            time.sleep(0.02)
        assert not self.errors, self.errors

    def finish(self) -> None:
        self._ends.set()
        self.join(2 * WAIT_S)
        assert not self.is_alive()
        assert not self.errors, self.errors

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self.join(2 * WAIT_S)
