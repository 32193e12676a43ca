"""Records of topics to Redis, all commands of a batch in one round trip.

    HASH, STRING, JSON     a key for each record: keyspace:record-key; a record without a value deletes it
    STREAM                 a message for each record
    LIST, SET, ZSET        one key for all; the record's key is the member; without a value it is taken out

At least once; with redis.multiexec and penstock.offsets.key exactly once: the offsets are in the same transaction.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

import penstock
from penstock.connect.connectors.redis.client import CONNECTION, connect, failure_of, failures, is_away
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

HASH, STRING, JSON, STREAM, LIST, SET, ZSET = "HASH", "STRING", "JSON", "STREAM", "LIST", "SET", "ZSET"
TYPES: Final = (HASH, JSON, LIST, SET, STREAM, STRING, ZSET)
_COMMANDS: Final = {
    "HSET": HASH, "SET": STRING, "JSONSET": JSON, "XADD": STREAM, "LPUSH": LIST, "RPUSH": LIST, "SADD": SET, "ZADD": ZSET,
}  # fmt: skip

SETTINGS: Final = CONNECTION | Settings(
    Setting("redis.type", Kind.STRING, "What records become: HASH, JSON, LIST, SET, STREAM, STRING, ZSET.", default=STREAM,
            importance=HIGH, check=one_of(*TYPES, any_case=True)),
    Setting("redis.command", Kind.STRING, "As redis.type, by the command: HSET, SET, JSONSET, XADD, LPUSH, RPUSH, SADD, ZADD.",
            default=None, check=one_of(*_COMMANDS, any_case=True)),
    Setting("redis.keyspace", Kind.STRING, "In front of the record's key, or the one key of a collection; ${topic} stands for "
            "the topic.", default="${topic}"),
    Setting("redis.key", Kind.STRING, "Another name of redis.keyspace.", default=None, importance=LOW),
    Setting("redis.separator", Kind.STRING, "Between keyspace and key.", default=":"),
    Setting("redis.push.direction", Kind.STRING, "Where a list grows: LEFT, RIGHT.", default="LEFT",
            check=one_of("LEFT", "RIGHT", any_case=True), importance=LOW),
    Setting("redis.key.ttl", Kind.LONG, "How long keys live, in seconds; -1: for ever.", default=-1),
    Setting("redis.multiexec", Kind.BOOLEAN, "Each batch in a transaction.", default=False),
    Setting("redis.wait.replicas", Kind.INT, "So many replicas must have a batch.", default=0, check=at_least(0),
            importance=LOW),
    Setting("redis.wait.timeout", Kind.LONG, "How long to wait for them, in milliseconds.", default=1000, check=at_least(1),
            importance=LOW),
    Setting("penstock.offsets.key", Kind.STRING, "Exactly once: a hash with the offsets, written in the transaction of the "
            "records. Needs redis.multiexec.", default=None),
    Setting("max.retries", Kind.INT, "How often a batch is written again while Redis is away; then the task fails.", default=10,
            check=at_least(0)),
    Setting("retry.backoff.ms", Kind.INT, "The wait before that.", default=3000, check=at_least(0)),
)  # fmt: skip

Commands = list[tuple[Any, ...]]


class RedisSinkTask(SinkTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("com.redis.kafka.connect.sink.RedisSinkTask",)

    def start(self) -> None:
        values = self.values
        command = (values["redis.command"] or "").upper()
        kind = _COMMANDS.get(command) or values["redis.type"].upper()
        self._commands_of: Callable[[SinkRecord], Commands] = {
            HASH: self._hash, STRING: self._string, JSON: self._json, STREAM: self._stream, LIST: self._list,
            SET: self._set, ZSET: self._zset,
        }[kind]  # fmt: skip
        is_right = command == "RPUSH" or (
            command != "LPUSH" and values["redis.push.direction"].upper() == "RIGHT"
        )
        self._push = "RPUSH" if is_right else "LPUSH"
        self._keyspace: str = values["redis.keyspace"] if values["redis.key"] is None else values["redis.key"]
        self._separator: str = values["redis.separator"]
        self._ttl: int = values["redis.key.ttl"]
        self._offsets_key: str | None = values["penstock.offsets.key"]
        if self._offsets_key:
            self._offsets_key = f"{self._offsets_key}:{self.context.connector}"
        self._retries_left: int = values["max.retries"]
        self._client = connect(values)

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        if not self._offsets_key:
            return
        with failures():
            kept = self._client.hgetall(self._offsets_key)
        for topic, partition in partitions:
            found = kept.get(f"{topic}/{partition}".encode())
            if found is not None:
                self.context.seek((topic, partition), int(found))

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except ConnectError:
            raise
        except Exception as error:
            raise self._again(error) if is_away(error) else failure_of(error) from error
        self._retries_left = self.values["max.retries"]

    def _again(self, error: BaseException) -> ConnectError:
        if self._retries_left <= 0:
            self._retries_left = self.values["max.retries"]
            return ConnectError(f"Redis: {error}; that was the last of max.retries attempts")
        self._retries_left -= 1
        self.context.retry_after(self.values["retry.backoff.ms"] / 1000)
        return failure_of(error)

    def _write(self, records: Sequence[SinkRecord]) -> None:
        found: list[tuple[SinkRecord, Commands]] = []
        for record in records:
            try:
                found.append((record, self._commands_of(record)))
            except DataError as error:
                self.context.report(record, error)
        with self._client.pipeline(transaction=self.values["redis.multiexec"]) as pipeline:
            if self._offsets_key:
                found = self._new_ones(pipeline, found, records)
            owners: list[SinkRecord | None] = []
            for record, commands in found:
                for command in commands:
                    pipeline.execute_command(*command)
                    owners.append(record)
            if self._offsets_key:
                ends = {f"{r.original[0]}/{r.original[1]}": r.original[2] + 1 for r in records}
                pipeline.execute_command(
                    "HSET", self._offsets_key, *[part for each in ends.items() for part in each]
                )
                owners.append(None)
            answers = pipeline.execute(raise_on_error=False) if owners else []
        for record, refusal in _refused_of(owners, answers):
            self._report(record, refusal)
        self._wait_for_replicas()

    def _report(self, record: SinkRecord, error: BaseException) -> None:
        try:
            self.context.report(record, error)
        except Exception:
            if self._offsets_key:
                # The task fails: the record must come again, and what is behind it with it.
                topic, partition, offset = record.original
                self._client.hset(self._offsets_key, f"{topic}/{partition}", offset)
            raise

    def _new_ones(
        self, pipeline: Any, found: list[tuple[SinkRecord, Commands]], records: Sequence[SinkRecord]
    ) -> list[tuple[SinkRecord, Commands]]:
        """Those that are not written; the transaction fails where another task writes meanwhile."""
        pipeline.watch(self._offsets_key)
        kept = {name.decode(): int(offset) for name, offset in pipeline.hgetall(self._offsets_key).items()}
        pipeline.multi()
        return [
            (record, commands)
            for record, commands in found
            if record.original[2] >= kept.get(f"{record.original[0]}/{record.original[1]}", 0)
        ]

    def _wait_for_replicas(self) -> None:
        count = self.values["redis.wait.replicas"]
        if count and self._client.wait(count, self.values["redis.wait.timeout"]) < count:
            raise ConnectError(f"fewer than {count} replicas have the records within redis.wait.timeout")

    def _key(self, record: SinkRecord) -> Any:
        """Of the record."""
        keyspace, own = self._keyspace.replace("${topic}", record.topic), _member(record)
        if not keyspace:
            return own
        return keyspace.encode() + self._separator.encode() + (own.encode() if isinstance(own, str) else own)

    def _collection(self, record: SinkRecord) -> str:
        found = self._keyspace.replace("${topic}", record.topic)
        if not found:
            raise DataError("redis.keyspace is empty: it is the key of the collection")
        return found

    def _hash(self, record: SinkRecord) -> Commands:
        key = self._key(record)
        if record.value is None:
            return [("DEL", key)]
        fields = _fields(record.value)
        gone = [name for name, value in fields.items() if value is None]
        kept = [part for name, value in fields.items() if value is not None for part in (name, value)]
        commands: Commands = []
        if gone:
            commands.append(("HDEL", key, *gone))
        if kept:
            commands.append(("HSET", key, *kept))
        return self._with_ttl(commands, key)

    def _string(self, record: SinkRecord) -> Commands:
        key = self._key(record)
        if record.value is None:
            return [("DEL", key)]
        return self._with_ttl([("SET", key, _text(record.value))], key)

    def _json(self, record: SinkRecord) -> Commands:
        key, value = self._key(record), record.value
        if value is None:
            return [("DEL", key)]
        return self._with_ttl(
            [("JSON.SET", key, "$", value if isinstance(value, str | bytes) else _json_text(value))], key
        )

    def _stream(self, record: SinkRecord) -> Commands:
        key = self._collection(record)
        if record.value is None:
            raise DataError("A record without a value cannot be a message of a stream")
        fields = [
            part
            for name, value in _fields(record.value).items()
            if value is not None
            for part in (name, value)
        ]
        if not fields:
            raise DataError("A message of a stream needs a field")
        return self._with_ttl([("XADD", key, "*", *fields)], key)

    def _list(self, record: SinkRecord) -> Commands:
        key, member = self._collection(record), _member(record)
        if record.value is None:
            return [("LREM", key, 0, member)]
        return self._with_ttl([(self._push, key, member)], key)

    def _set(self, record: SinkRecord) -> Commands:
        key, member = self._collection(record), _member(record)
        if record.value is None:
            return [("SREM", key, member)]
        return self._with_ttl([("SADD", key, member)], key)

    def _zset(self, record: SinkRecord) -> Commands:
        key, member, score = self._collection(record), _member(record), record.value
        if score is None:
            return [("ZREM", key, member)]
        try:
            number = float(score)
        except (TypeError, ValueError):
            raise DataError(
                f"The value of a record for a ZSET is its score, and must be a number: {score!r}"
            ) from None
        return self._with_ttl([("ZADD", key, repr(number), member)], key)

    def _with_ttl(self, commands: Commands, key: Any) -> Commands:
        if self._ttl > 0:
            commands.append(("EXPIRE", key, self._ttl))
        return commands

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All is written when `put` returns."""

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()


def _refused_of(
    owners: Sequence[SinkRecord | None], answers: Sequence[Any]
) -> list[tuple[SinkRecord, BaseException]]:
    """One for each record. Raises what is not a record's fault."""
    found: dict[int, tuple[SinkRecord, BaseException]] = {}
    for record, answer in zip(owners, answers, strict=True):
        if not isinstance(answer, Exception):
            continue
        failure = failure_of(answer)
        if is_away(answer) or record is None or type(failure) is not ConnectError:
            raise answer
        found.setdefault(id(record), (record, DataError(f"Redis does not take the record: {answer}")))
    return list(found.values())


def _member(record: SinkRecord) -> str | bytes:
    key = record.key
    if isinstance(key, str | bytes):
        return key
    if key is None or isinstance(key, Struct | dict | list):
        raise DataError(
            f"The key of the record must be a text, bytes or a number, and it is {type(key).__name__}"
        )
    return str(key)


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, Struct | dict):
        raise DataError(f"The value must be a struct or an object, and it is {type(value).__name__}")
    return {str(name): None if each is None else _text(each) for name, each in value.items()}


def _text(value: Any) -> str | bytes:
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return (
            _json_text(value).strip('"') if not isinstance(value, Struct | dict | list) else _json_text(value)
        )
    return str(value)


def _json_text(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError as error:
        raise DataError(f"The value cannot be told in JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return dict(value.items())
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return str(value)


class RedisSink(SinkConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("com.redis.kafka.connect.RedisSinkConnector",)
    task_class = RedisSinkTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            values = SETTINGS.parse(given)
        except InvalidConfig:
            return {}  # the table has told it
        if values["penstock.offsets.key"] and (not values["redis.multiexec"] or values["redis.cluster"]):
            return {"penstock.offsets.key": ["It needs redis.multiexec=true, and a Redis that is no cluster"]}
        return {}

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        values = SETTINGS.parse(given)
        if values["penstock.offsets.key"]:
            key = f"{values['penstock.offsets.key']}:{given.get('name', '')}"
            with failures():
                client = connect(values)
                for (topic, partition), offset in offsets.items():
                    if offset is None:
                        client.hdel(key, f"{topic}/{partition}")
                    else:
                        client.hset(key, f"{topic}/{partition}", offset)
                client.close()
        return True
