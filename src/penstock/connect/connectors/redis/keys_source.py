"""Keys that change, with their values, to a topic: by Redis' notifications (notify-keyspace-events KEA), which may be lost.

First all keys that are there (mode LIVE), then those that change. A key that is gone becomes a record without a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import penstock
from penstock.connect.connectors.redis.client import CONNECTION, connect, failures
from penstock.connect.data.schema import FLOAT64, INT64, STRING, array, map_of, struct
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings, at_least, one_of

AWAY_S: Final = 1.0
POLL_S: Final = 0.2
VALUE: Final = struct(
    "com.redis.kafka.connect.keys.Value", key=STRING, type=STRING, ttl=INT64, string=STRING.optional(),
    hash=map_of(STRING, STRING).optional(), list=array(STRING).optional(), set=array(STRING).optional(),
    zset=map_of(STRING, FLOAT64).optional(),
)  # fmt: skip

SETTINGS: Final = CONNECTION | Settings(
    Setting("redis.keys.pattern", Kind.STRING, "The keys, with * and ? as in Redis.", default="*", importance=HIGH),
    Setting("topic", Kind.STRING, "The topic.", importance=HIGH),
    Setting("mode", Kind.STRING, "LIVE: all keys, then changes; LIVEONLY: changes.", default="LIVE",
            check=one_of("LIVE", "LIVEONLY", any_case=True)),
    Setting("batch.size", Kind.LONG, "The most keys at a time.", default=500, check=at_least(1)),
)  # fmt: skip


class RedisKeysSourceTask(SourceTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("com.redis.kafka.connect.source.RedisKeysSourceTask",)

    def start(self) -> None:
        self._client = connect(self.values)
        self._scan: Iterator[bytes] | None = None
        self._listening: Any = None

    def _begin(self) -> None:
        """Listens before it looks: what changes meanwhile comes twice, and nothing is missed."""
        values = self.values
        told = self._client.config_get("notify-keyspace-events").get("notify-keyspace-events", "")
        if "K" not in told:
            self.log.warning("Redis tells no changes: set notify-keyspace-events to KEA")
        database = self._client.connection_pool.connection_kwargs.get("db", 0)
        self._prefix = f"__keyspace@{database}__:"
        self._listening = self._client.pubsub(ignore_subscribe_messages=True)
        self._listening.psubscribe(self._prefix + values["redis.keys.pattern"])
        if values["mode"].upper() == "LIVE":
            self._scan = self._client.scan_iter(values["redis.keys.pattern"], count=values["batch.size"])

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            with failures():
                if self._listening is None:
                    self._begin()
                keys = self._next_keys()
                return self._records(list(dict.fromkeys(keys))) if keys else None
        except RetriableError:
            if self._listening is not None:
                self._listening.close()
                self._listening = None  # all keys again: changes may have been missed
            self.context.wait(AWAY_S)
            raise

    def _next_keys(self) -> list[bytes]:
        most, keys = self.values["batch.size"], []
        if self._scan is not None:
            for key in self._scan:
                keys.append(key)
                if len(keys) >= most:
                    return keys
            self._scan = None
            return keys
        prefix = self._prefix.encode()
        wait_s = POLL_S
        while len(keys) < most:
            message = self._listening.get_message(timeout=wait_s)
            if message is None:
                break
            wait_s = 0.0
            if message["type"] == "pmessage":
                keys.append(message["channel"].removeprefix(prefix))
        return keys

    def _records(self, keys: list[bytes]) -> list[SourceRecord]:
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.type(key).ttl(key)
            told = pipeline.execute()
            kinds = [kind.decode() for kind in told[::2]]
            for key, kind in zip(keys, kinds, strict=True):
                _ask(pipeline, key, kind)
            answers = iter(pipeline.execute(raise_on_error=False))
        found = []
        for key, kind, ttl in zip(keys, kinds, told[1::2], strict=True):
            answer = next(answers) if kind in _READERS else None
            value = None
            if kind != "none" and not isinstance(answer, Exception) and answer is not None:
                value = VALUE.of({"key": _text(key), "type": kind, "ttl": ttl, kind: _READERS[kind](answer)})
            elif kind not in _READERS and kind != "none":
                value = VALUE.of({"key": _text(key), "type": kind, "ttl": ttl})
            found.append(
                SourceRecord(
                    None, None, self.values["topic"], value, key=_text(key), key_schema=STRING,
                    value_schema=None if value is None else VALUE,
                )
            )  # fmt: skip
        return found

    def stop(self) -> None:
        if getattr(self, "_listening", None) is not None:
            self._listening.close()
        if hasattr(self, "_client"):
            self._client.close()


def _ask(pipeline: Any, key: bytes, kind: str) -> None:
    if kind == "string":
        pipeline.get(key)
    elif kind == "hash":
        pipeline.hgetall(key)
    elif kind == "list":
        pipeline.lrange(key, 0, -1)
    elif kind == "set":
        pipeline.smembers(key)
    elif kind == "zset":
        pipeline.zrange(key, 0, -1, withscores=True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_READERS: Final[Mapping[str, Any]] = {
    "string": _text,
    "hash": lambda answer: {_text(name): _text(value) for name, value in answer.items()},
    "list": lambda answer: [_text(each) for each in answer],
    "set": lambda answer: sorted(_text(each) for each in answer),
    "zset": lambda answer: {_text(member): float(score) for member, score in answer},
}


class RedisKeysSource(SourceConnector):
    """One task: every listener hears all changes."""

    version = penstock.__version__
    settings = SETTINGS
    java_names = ("com.redis.kafka.connect.RedisKeysSourceConnector",)
    task_class = RedisKeysSourceTask

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        raise ConnectError("This connector keeps no offsets")
