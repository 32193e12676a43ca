"""The one producer of a login, and what it reports, on the event loop's thread.

librdkafka sends by threads of its own. Its reports are taken here, by `poll(0)` a thousand times a second while records are on
their way: a thread that waits for reports would have to take Python's lock for each of them, and would wait up to 5 ms for it
when the loop is busy. `produce` never waits; who sends waits with `ready`, when the buffer is full.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.client.clients import Connection, translated

Report = Callable[[Any, Any], None]
"""Called with a KafkaError or None, and the message with its partition and offset."""

POLL_S: Final = 0.001
ROOM_WAIT_S: Final = 0.002
MAX_ROOM_WAIT_S: Final = 30.0
CLOSE_S: Final = 5.0
CLOSE_LOOK_S: Final = 0.01
LOOK_TIMEOUT_S: Final = 5.0
LOOK_EVERY_S: Final = 1.0
MAX_LOOKED: Final = 1000
DEFAULTS: Final = {
    "linger.ms": "1",
    "message.timeout.ms": "30000",  # a request ends after 60 s; its records say before that what became of them
    "enable.idempotence": "true",
    "message.max.bytes": "1048576",  # as Java's max.request.size
    "queue.buffering.max.messages": "100000",
    "queue.buffering.max.kbytes": "131072",
}


class NotNow(Exception):
    """The record may be taken after `Sender.ready`: there is no room, or the producer does not know the partition yet."""


class BufferFull(Exception):
    """No room for MAX_ROOM_WAIT_S: the brokers do not take what they are sent."""


class Sender:
    """Used by the loop's thread only."""

    def __init__(
        self, connection: Connection, loop: asyncio.AbstractEventLoop, *, is_idempotent: bool
    ) -> None:
        """Blocks until a broker answers; Unreachable otherwise. The one step that is made in another thread."""
        self._fatal: Any = None
        self._producer: Producer = connection.producer(
            _defaults(connection.properties, is_idempotent=is_idempotent), error_cb=self._failed
        )
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._on_their_way = 0
        self.is_usable = True
        self._to_look_at: str | None = None
        self._looked_s: dict[str, float] = {}

    @property
    def may_not_be_idempotent(self) -> bool:
        """The broker refuses this login what an idempotent producer needs."""
        return self._fatal is not None and self._fatal.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        report: Report,
        *,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """NotNow; Refused and Unreachable where the record cannot be taken. `report` is called later, once, in all other cases,
        and has to call `done`."""
        try:
            if headers:
                self._producer.produce(
                    topic, value, key, partition, report, None, timestamp_ms, headers=list(headers)
                )
            else:
                self._producer.produce(topic, value, key, partition, report, None, timestamp_ms)
        except BufferError:
            raise NotNow from None
        except KafkaException as error:
            cause = error.args[0]
            if cause.fatal() or cause.code() == KafkaError._FATAL:
                raise translated(KafkaException(self._fatal_behind(cause))) from None
            if cause.code() == KafkaError._UNKNOWN_PARTITION and self._may_look_at(topic):
                self._to_look_at = topic
                raise NotNow from None
            raise translated(error) from None
        self._on_their_way += 1
        if self._timer is None:
            self._timer = self._loop.call_later(POLL_S, self._poll)

    def _fatal_behind(self, error: Any) -> Any:
        """What it is that the producer cannot go on after: it may not have told that yet."""
        try:
            self._producer.poll(0)
        except KafkaException as told:
            self._failed(told.args[0])
        self.is_usable = False
        self._fatal = self._fatal or error
        return self._fatal

    def done(self, error: Any) -> Any:
        """Of each report; the error, or the one behind it."""
        self._on_their_way -= 1
        if error is None:
            return None
        if error.fatal():
            self._failed(error)
        is_hidden = error.code() in (KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
        return self._fatal if is_hidden and self._fatal is not None else error

    def _failed(self, error: Any) -> None:
        """librdkafka goes on by itself after all errors but fatal ones: then the next one gets another producer."""
        if error.fatal():
            self.is_usable = False
            self._fatal = self._fatal or error

    async def ready(self) -> None:
        """After NotNow. BufferFull when nothing moves."""
        topic, self._to_look_at = self._to_look_at, None
        if topic is not None:
            self._looked_s[topic] = time.monotonic()
            while len(self._looked_s) > MAX_LOOKED:
                self._looked_s.pop(next(iter(self._looked_s)))
            with suppress(KafkaException):  # it is tried once more, and says then what is wrong
                await asyncio.to_thread(self._producer.list_topics, topic, LOOK_TIMEOUT_S)
            return
        started_s, before = time.monotonic(), self._on_their_way
        while self._on_their_way >= before > 0:
            if time.monotonic() - started_s > MAX_ROOM_WAIT_S:
                raise BufferFull
            await asyncio.sleep(ROOM_WAIT_S)

    def _may_look_at(self, topic: str) -> bool:
        """Whether librdkafka may have an old picture of the topic: one that has grown since."""
        return time.monotonic() - self._looked_s.get(topic, 0.0) > LOOK_EVERY_S

    def _poll(self) -> None:
        try:
            self._producer.poll(0)
        except KafkaException as error:
            self._failed(error.args[0])
        self._timer = self._loop.call_later(POLL_S, self._poll) if self._on_their_way else None

    async def close(self) -> None:
        """When nobody sends any more: what is on its way gets a few seconds, and its reports are taken here as ever."""
        self.is_usable = False
        until_s = time.monotonic() + CLOSE_S
        while self._on_their_way and time.monotonic() < until_s:
            await asyncio.sleep(CLOSE_LOOK_S)
        if self._timer is not None:
            self._timer.cancel()
        last = [self._producer]
        del self._producer
        await asyncio.to_thread(last.clear)  # its threads are waited for


def _defaults(given: Mapping[str, str], *, is_idempotent: bool) -> dict[str, str]:
    """Without those that contradict what is given."""
    left = dict(DEFAULTS)
    acks = given.get("acks", given.get("request.required.acks", "all")).lower()
    if acks not in ("all", "-1") or not is_idempotent:
        left["enable.idempotence"] = "false"
    if "delivery.timeout.ms" in given:
        left.pop("message.timeout.ms")
    if "max.request.size" in given:
        left.pop("message.max.bytes")
    if "buffer.memory" in given:
        left.pop("queue.buffering.max.kbytes")
    return left
