"""The records of one request, sent in order and answered together (v2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import orjson
from confluent_kafka import KafkaError

from penstock.client.errors import Refused, Unreachable
from penstock.rest import errors
from penstock.rest.produce.sender import BufferFull, NotNow, Sender
from penstock.rest.produce.turns import Turns

MAX_ON_THEIR_WAY: Final = 5000
"""Of one request: so many reports may come at once, and are taken in one turn."""
TOLD_AT_A_TIME: Final = 5000
MAX_SINGLE: Final = 1000
_TOO_LARGE_TEXT: Final = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE).str()


Record = tuple[bytes | None, bytes | None, int]
"""Value, key, and the partition; -1: by the key, or any. A plain tuple: Python's garbage collector does not look at those."""


class Batch:
    """The outcome of each record, in the order of the request, as v2 answers it."""

    def __init__(self, sender: Sender, topic: str, partitions: int) -> None:
        self._sender = sender
        self._topic = topic
        self._partitions = partitions
        self._outcomes: list[dict[str, Any]] = []
        self._left = 0
        self._waits_for = 0
        self._all_there: asyncio.Future[None] | None = None
        self.is_topic_gone = False
        self._is_too_large = False

    async def send(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        # A place for each: reports come in any order.
        self._outcomes = [_NOTHING] * len(records)
        turns = Turns()
        for index, record in enumerate(records):
            if self._left >= MAX_ON_THEIR_WAY:
                await self._reports(MAX_ON_THEIR_WAY // 2)
            if record[2] >= self._partitions:
                self._outcomes[index] = failed(
                    errors.KAFKA_ERROR, f"{self._topic} has no partition {record[2]}."
                )
            else:
                try:
                    self._produce(index, record)
                except NotNow:
                    await self._wait_and_produce(index, record)
            if turns.is_over():
                await turns.give_way()
        await self._reports()
        for index in self._too_large_together() if self._is_too_large and len(records) > 1 else ():
            await self._wait_and_produce(index, records[index])
            await self._reports()
        return self._outcomes

    async def _reports(self, left: int = 0) -> None:
        """Until only so many are still to come."""
        if self._left > left:
            self._waits_for = left
            self._all_there = asyncio.get_running_loop().create_future()
            await self._all_there
            self._all_there = None

    def _too_large_together(self) -> list[int]:
        """The records of a batch that the broker found too large: one by one they may not be. Java's producer splits it."""
        found = [n for n, outcome in enumerate(self._outcomes) if outcome.get("error") == _TOO_LARGE_TEXT]
        return found if len(found) <= MAX_SINGLE else []

    def _produce(self, index: int, record: Record) -> None:
        try:
            self._sender.produce(
                self._topic,
                record[0],
                record[1],
                partial(self._reported, index),
                partition=record[2],
            )
            self._left += 1
        except Refused as error:
            self._outcomes[index] = failed(errors.refused_record_code(error.code), str(error))
        except Unreachable as error:
            self._outcomes[index] = failed(errors.KAFKA_RETRIABLE, str(error))

    async def _wait_and_produce(self, index: int, record: Record) -> None:
        while True:
            try:
                return self._produce(index, record)
            except NotNow:
                pass
            try:
                await self._sender.ready()
            except BufferFull:
                self._outcomes[index] = failed(errors.KAFKA_RETRIABLE, "The buffer of the producer is full.")
                return None

    def _reported(self, index: int, error: Any, message: Any) -> None:
        error = self._sender.done(error)
        if error is None:
            self._outcomes[index] = {
                "partition": message.partition(),
                "offset": message.offset(),
                "error_code": None,
                "error": None,
            }
        else:
            self._outcomes[index] = failed(errors.record_error_code(error), error.str())
            self._is_too_large |= error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            if error.name() in ("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART"):
                self.is_topic_gone = True
        self._left -= 1
        if self._left <= self._waits_for and self._all_there is not None and not self._all_there.done():
            self._all_there.set_result(None)


_NOTHING: Final[dict[str, Any]] = {}


def failed(code: int, message: str) -> dict[str, Any]:
    return {"partition": None, "offset": None, "error_code": code, "error": message}


async def told(outcomes: list[dict[str, Any]]) -> bytes:
    """The list in JSON, a part at a time."""
    parts = []
    for at in range(0, len(outcomes), TOLD_AT_A_TIME):
        if at:
            await asyncio.sleep(0)
        parts.append(orjson.dumps(outcomes[at : at + TOLD_AT_A_TIME])[1:-1])
    return b"[" + b",".join(parts) + b"]"
