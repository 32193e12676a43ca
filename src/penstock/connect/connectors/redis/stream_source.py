"""Messages of a stream to a topic, through a group of consumers: tasks share the stream.

A message is acknowledged when its record and its offset are kept. What was read before and is not acknowledged comes again
first; what is behind the kept offset was written, and is only acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redis import exceptions as errors

import penstock
from penstock.connect.connectors.redis.client import CONNECTION, connect, failures
from penstock.connect.data.schema import STRING, map_of, struct
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import Config, SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings, at_least, one_of

AT_LEAST_ONCE, AT_MOST_ONCE = "at-least-once", "at-most-once"
MESSAGE_ID: Final = "messageId"
VALUE: Final = struct(
    "com.redis.kafka.connect.stream.Value", id=STRING, stream=STRING, body=map_of(STRING, STRING)
)
AWAY_S: Final = 1.0
CLAIM_EVERY_S: Final = 30.0

SETTINGS: Final = CONNECTION | Settings(
    Setting("redis.stream.name", Kind.STRING, "The stream.", importance=HIGH),
    Setting("redis.stream.offset", Kind.STRING, "Where a new group begins.", default="0-0"),
    Setting("redis.stream.block", Kind.LONG, "How long to wait for messages, in milliseconds.", default=100, check=at_least(1)),
    Setting("redis.stream.consumer.group", Kind.STRING, "The group.", default="kafka-consumer-group"),
    Setting("redis.stream.consumer.name", Kind.STRING, "The consumer; ${task} stands for the task's number.",
            default="consumer-${task}"),
    Setting("redis.stream.delivery", Kind.STRING, "Acknowledged when it is written (at-least-once), or when it is read "
            "(at-most-once).", default=AT_LEAST_ONCE, check=one_of(AT_LEAST_ONCE, AT_MOST_ONCE)),
    Setting("redis.stream.claim.idle.ms", Kind.LONG, "Messages that another consumer has had for so long, and has not "
            "acknowledged, are taken over; 0: never.", default=300_000, check=at_least(0)),
    Setting("batch.size", Kind.LONG, "The most messages at a time.", default=500, check=at_least(1)),
    Setting("topic", Kind.STRING, "The topic; ${stream} stands for the stream's name.", default="${stream}", importance=HIGH),
)  # fmt: skip


class RedisStreamSourceTask(SourceTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("com.redis.kafka.connect.source.RedisStreamSourceTask",)

    def start(self) -> None:
        values = self.values
        self._stream: str = values["redis.stream.name"]
        self._group: str = values["redis.stream.consumer.group"]
        self._consumer: str = values["redis.stream.consumer.name"].replace("${task}", str(self.context.task))
        self._topic: str = values["topic"].replace("${stream}", self._stream)
        self._acks_late = values["redis.stream.delivery"] == AT_LEAST_ONCE
        self._partition = {"stream": self._stream, "group": self._group, "consumer": self._consumer}
        kept = self.context.offset(self._partition)
        self._kept = _place(kept[MESSAGE_ID]) if kept and kept.get(MESSAGE_ID) else None
        self._pending_from: str | None = "0-0"
        self._unacknowledged: list[bytes] = []
        self._next_claim_s = time.monotonic() + CLAIM_EVERY_S
        self._client = connect(values)
        with failures():
            try:
                self._client.xgroup_create(
                    self._stream, self._group, values["redis.stream.offset"], mkstream=True
                )
            except errors.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            with failures():
                messages = self._read()
        except RetriableError:
            self._pending_from = "0-0"  # what was on its way is asked for again
            self._unacknowledged.clear()
            self.context.wait(AWAY_S)
            raise
        return [self._record(number, fields) for number, fields in messages]

    def _read(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        count = self.values["batch.size"]
        if self._pending_from is not None:
            found = self._answer({self._stream: self._pending_from}, count, None)
            if found:
                self._pending_from = found[-1][0].decode()
                return self._left(found)
            self._pending_from = None
        claimed = self._claim(count)
        if claimed:
            return claimed
        found = self._answer({self._stream: ">"}, count, self.values["redis.stream.block"])
        if found and not self._acks_late:
            self._client.xack(self._stream, self._group, *[number for number, _ in found])
        else:
            self._unacknowledged += [number for number, _ in found]
        return found

    def _answer(
        self, places: Any, count: int, block_ms: int | None
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        found = self._client.xreadgroup(self._group, self._consumer, places, count=count, block=block_ms)
        if not found:
            return []
        [listed] = found.values() if isinstance(found, dict) else [each[1] for each in found]
        # Newer drivers put the messages of a stream into one more list.
        if listed and isinstance(listed[0], list):
            listed = listed[0]
        return [(number, fields) for number, fields in listed]

    def _left(self, found: list[tuple[bytes, Any]]) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Those of the pending that are not written; a message that is deleted has no fields."""
        left, done = [], []
        for number, fields in found:
            is_written = self._kept is not None and _place(number.decode()) <= self._kept
            if not fields or is_written:
                done.append(number)
            else:
                left.append((number, fields))
        if done:
            self._client.xack(self._stream, self._group, *done)
        self._unacknowledged += [number for number, _ in left]
        return left

    def _claim(self, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        idle_ms = self.values["redis.stream.claim.idle.ms"]
        if not idle_ms or time.monotonic() < self._next_claim_s:
            return []
        self._next_claim_s = time.monotonic() + min(CLAIM_EVERY_S, idle_ms / 1000)
        answer = self._client.xautoclaim(
            self._stream, self._group, self._consumer, idle_ms, "0-0", count=count
        )
        found = [(number, fields) for number, fields in answer[1] if fields]
        mine = set(self._unacknowledged)
        found = [each for each in found if each[0] not in mine]
        self._unacknowledged += [number for number, _ in found]
        return found

    def _record(self, number: bytes, fields: dict[bytes, bytes]) -> SourceRecord:
        text = number.decode()
        body = {_text(name): _text(value) for name, value in fields.items()}
        # A message that was taken over is older than where this consumer is.
        self._kept_of_records = max(getattr(self, "_kept_of_records", (0, 0)), _place(text))
        ms, sequence = self._kept_of_records
        return SourceRecord(
            self._partition, {MESSAGE_ID: f"{ms}-{sequence}"}, self._topic,
            Struct.trusted(VALUE, [text, self._stream, body]), key=text, key_schema=STRING, value_schema=VALUE,
            timestamp_ms=_place(text)[0],
        )  # fmt: skip

    def commit(self) -> None:
        if self._unacknowledged and self._acks_late:
            with failures():
                self._client.xack(self._stream, self._group, *self._unacknowledged)
        self._unacknowledged.clear()

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()


def _place(number: str) -> tuple[int, int]:
    ms, _, sequence = number.partition("-")
    try:
        return int(ms), int(sequence or 0)
    except ValueError:
        raise ConnectError(f"{number} is no id of a message") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


class RedisStreamSource(SourceConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = (
        "com.redis.kafka.connect.RedisStreamSourceConnector",
        "com.redis.kafka.connect.RedisSourceConnector",
    )
    task_class = RedisStreamSourceTask

    def task_configs(self, max_tasks: int) -> list[Config]:
        if "${task}" not in self.values["redis.stream.consumer.name"]:
            return [dict(self.given)]  # two tasks must not be one consumer
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        for offset in offsets.values():
            if offset is not None:
                _place(str(offset.get(MESSAGE_ID)))
        return True
