"""Records go to the topic, each with the leader's term and its number in it (`terms`), by librdkafka's idempotent producer.

A writer is for one term and is closed with it. Whether a record has arrived is seen when it is read back; the producer is asked
only what went wrong.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.client.clients import Connection
from penstock.registry.records import Record
from penstock.registry.terms import HEADER, Term

if TYPE_CHECKING:
    from confluent_kafka import Producer

log = logging.getLogger("penstock.registry")

POLL_S: Final = 0.1
MAX_MESSAGE_BYTES: Final = 100 << 20
"""The broker says what is too large."""


class WriteFailed(Exception):
    """`is_too_large`: the broker takes no record of this size."""

    def __init__(self, reason: str, *, is_too_large: bool = False) -> None:
        super().__init__(reason)
        self.is_too_large = is_too_large


class Writer:
    def __init__(
        self,
        connection: Connection,
        topic: str,
        term: Term,
        *,
        timeout_ms: int,
        failed: Callable[[int, WriteFailed], None],
    ) -> None:
        """Blocks. `failed` gets the number of a record, in a thread."""
        self.term = term
        self._topic = topic
        self._failed = failed
        self._next = 0
        self._closed = threading.Event()
        self._producer: Producer = connection.producer(
            {
                "enable.idempotence": "true",
                "acks": "all",
                "linger.ms": "0",
                "message.timeout.ms": str(timeout_ms),
                "message.max.bytes": str(MAX_MESSAGE_BYTES),
                "allow.auto.create.topics": "false",
            }
        )
        self._thread = threading.Thread(target=self._poll, name="penstock-writing", daemon=True)
        self._thread.start()

    def next_number(self) -> int:
        self._next += 1
        return self._next - 1

    def send(self, number: int, record: Record) -> None:
        """WriteFailed where it cannot even be tried."""
        from confluent_kafka import KafkaException

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._failed(number, _failure(error))

        try:
            self._producer.produce(
                self._topic,
                value=record.value,
                key=record.key,
                partition=0,
                headers=[(HEADER, self.term.header(number))],
                on_delivery=delivered,
            )
        except KafkaException as error:
            raise _failure(error.args[0]) from None
        except BufferError:
            raise WriteFailed("too many records wait to be written") from None

    def close(self) -> None:
        """At once; what is on its way may still arrive, and is known by its term."""
        self._closed.set()

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(POLL_S)
        self._producer.purge()
        self._producer.poll(0)


def _failure(error: Any) -> WriteFailed:
    from confluent_kafka import KafkaError

    return WriteFailed(error.str(), is_too_large=error.code() == KafkaError.MSG_SIZE_TOO_LARGE)


class ReadBack:
    """The records of one term that are waited for, by their numbers. Belongs to the loop's thread."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[bool]] = {}

    def expect(self, number: int) -> asyncio.Future[bool]:
        """Whether it counts, once it has been read."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        return future

    def seen(self, number: int, counts: bool) -> None:
        future = self._waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_result(counts)

    def fail(self, number: int, failure: Exception) -> None:
        future = self._waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(failure)

    def fail_all(self, failure: Exception) -> None:
        for number in list(self._waiting):
            self.fail(number, failure)
