"""PRINT: the records of a topic as lines, with a guess at their formats."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from penstock.client.errors import NoSuchTopic, Refused
from penstock.sql.engine.following import PASSING_CODES
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.engine.results import Header, ResultRow, Results
from penstock.sql.parsing.statements import Print
from penstock.streams.plan.schema import Schema

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

POLL_S: Final = 0.2
BOUND: Final = 1000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class PrintedLines:
    """A thread reads the topic; the coroutine takes lines."""

    def __init__(self, engine: Engine, statement: Print, closed: Callable[[], object]) -> None:
        try:
            self._partitions = engine.cluster.topics.partitions(statement.topic)
        except NoSuchTopic:
            raise SqlRefused(
                f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions to list the "
                "topic. Topic names are case-sensitive.",
                statement=statement.text,
            ) from None
        self._statement = statement
        self._results = Results(Header("print", Schema((), ())), bound=BOUND, stop=closed)
        self._consumer = engine.connection.consumer(
            {
                "group.id": "penstock-sql-print",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": "100",
            }
        )
        self._thread = threading.Thread(target=self._run, name="penstock-print", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._results.close()

    async def lines(self) -> AsyncIterator[bytes]:
        try:
            while rows := await self._results.take():
                yield b"".join(row.values[0] for row in rows)
            if self._results.error is not None:
                yield self._results.error.encode() + b"\n"
        finally:
            await asyncio.to_thread(self.close)

    def _run(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

        at = OFFSET_BEGINNING if self._statement.from_beginning else OFFSET_END
        every = self._statement.interval or 1
        limit = self._statement.limit
        seen = told = 0
        formats: tuple[str, str] | None = None
        try:
            self._consumer.assign(
                [TopicPartition(each.topic, each.partition, at) for each in self._partitions]
            )
            while not self._results.is_closed and (limit is None or told < limit):
                message = self._consumer.poll(POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    if error.fatal() or error.code() not in PASSING_CODES:
                        raise Refused(error.str(), code=error.code())
                    continue
                seen += 1
                if (seen - 1) % every:
                    continue
                text = ""
                if formats is None:
                    formats = (_format(message.key()), _format(message.value()))
                    text = f"Key format: {formats[0]}\nValue format: {formats[1]}\n"
                self._results.put(ResultRow(((text + _line(message)).encode(),)))
                told += 1
            self._results.end()
        except Exception as error:
            self._results.end(error=str(error))
        finally:
            self._consumer.close()


def _format(data: bytes | None) -> str:
    if data is None:
        return "¯\\_(ツ)_/¯ - no data processed"
    if _json(data) is not None:
        return "JSON or KAFKA_STRING"
    if len(data) == 8 and not _is_text(data):
        return "KAFKA_BIGINT or KAFKA_DOUBLE"
    if len(data) == 4 and not _is_text(data):
        return "KAFKA_INT"
    if data[:1] == b"\0" and len(data) > 5:
        return "AVRO or PROTOBUF or JSON_SR"
    return "KAFKA_STRING" if _is_text(data) else "UNRECOGNIZED_BYTES"


def _is_text(data: bytes) -> bool:
    try:
        return all(char.isprintable() or char.isspace() for char in data.decode())
    except UnicodeDecodeError:
        return False


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _line(message: Any) -> str:
    _, milliseconds = message.timestamp()
    try:
        moment = (EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3] + " Z"
    except OverflowError:
        moment = str(milliseconds)
    key, value = _text(message.key()), _text(message.value())
    return f"rowtime: {moment}, key: {key}, value: {value}, partition: {message.partition()}\n"


def _text(data: bytes | None) -> str:
    if data is None:
        return "<null>"
    if not _is_text(data):
        if len(data) in (4, 8):
            return str(int.from_bytes(data, "big", signed=True))
        return data.decode("utf-8", "backslashreplace")
    return data.decode()
