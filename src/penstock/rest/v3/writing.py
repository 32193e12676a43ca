"""One record of v3: from the object of a request to the producer, and to the object of the answer."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from penstock.client.errors import NoSuchTopic, Refused, Unreachable
from penstock.rest import bodies, errors
from penstock.rest.access import Access
from penstock.rest.produce.sender import BufferFull, NotNow
from penstock.rest.registry_values import SchemaSpec
from penstock.rest.values import FORMATS, WITH_SCHEMA, WRITES, no_registry, write_binary
from penstock.web.errors import HttpError

RECORD_FIELDS: Final = frozenset({"partition_id", "headers", "key", "value", "timestamp"})
_DATA_FIELDS: Final = frozenset(
    {"type", "subject", "subject_name_strategy", "schema_id", "schema_version", "schema", "data"}
)
_OF_SCHEMAS: Final = ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema")
MAX_HEADERS: Final = 1000
Outcome = dict[str, Any]


class _Part(NamedTuple):
    """A key or a value."""

    data: bytes | None
    told: dict[str, Any] | None
    """What the answer says of it."""


_NONE: Final = _Part(None, None)


class RecordWriter:
    """The records of one request. `send` gives a future for the answer; records go out in the order of the calls."""

    def __init__(self, access: Access, cluster_id: str, topic: str) -> None:
        self._access = access
        self._registry = access.registry
        self._cluster_id = cluster_id
        self._topic = topic

    async def partitions(self) -> int:
        """HttpError 404 where there is no such topic."""
        try:
            return await self._access.topics.partitions(self._topic)
        except NoSuchTopic:
            raise HttpError(
                404,
                "This server does not host this topic-partition.",
                error_code=errors.UNKNOWN_IN_CLUSTER,
            ) from None

    async def send(self, record: dict[str, Any]) -> asyncio.Future[bytes]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        try:
            await self._send(record, answer)
        except HttpError as error:
            answer.set_result(line(error.document()))
        except (Refused, Unreachable) as error:
            known = errors.refusal(error)
            assert known is not None
            answer.set_result(line(known.document()))
        return answer

    async def _send(self, record: dict[str, Any], answer: asyncio.Future[bytes]) -> None:
        partition = bodies.number(record, "partition_id", -1)
        if record.get("partition_id") is not None:
            await self._check_partition(partition)
        key = await self._part(record.get("key"), is_key=True)
        value = await self._part(record.get("value"), is_key=False)
        headers = _headers(record)
        timestamp_ms = _timestamp_ms(record.get("timestamp"))
        sender = self._access.sender_at_once() or await self._access.sender()

        def reported(error: Any, message: Any) -> None:
            error = sender.done(error)
            if answer.done():
                return
            if error is not None:
                code = errors.stream_error_code(error)
                answer.set_result(line({"error_code": code, "message": error.str()}))
            else:
                answer.set_result(line(self._outcome(message, key, value)))

        while True:
            try:
                sender.produce(
                    self._topic,
                    value.data,
                    key.data,
                    reported,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                    headers=headers,
                )
                return
            except NotNow:
                try:
                    await sender.ready()
                except BufferFull:
                    answer.set_result(
                        line(
                            {
                                "error_code": errors.KAFKA_RETRIABLE,
                                "message": "The buffer of the producer is full.",
                            }
                        )
                    )
                    return

    async def _check_partition(self, partition: int) -> None:
        if partition < 0:
            raise errors.partition_not_found()
        if partition >= await self.partitions() and partition >= await self._access.topics.again(self._topic):
            raise errors.partition_not_found()

    async def _part(self, given: Any, *, is_key: bool) -> _Part:
        if given is None:
            return _NONE
        if not isinstance(given, dict) or not given.keys() <= _DATA_FIELDS:
            bodies.checked_object(given, _DATA_FIELDS)
        format_ = given.get("type")
        if format_ in WRITES and len(given) <= 2:  # the usual case, without schemas
            data = WRITES[format_](given.get("data"))
            return _Part(data, {"type": format_, "size": 0 if data is None else len(data)})
        spec = _spec(given)
        if self._registry is None:
            raise no_registry()
        resolved = await self._registry.resolved(self._topic, spec, is_key=is_key)
        data = resolved.write(given.get("data"))
        told = {
            "type": resolved.format,
            "subject": resolved.subject,
            "schema_id": resolved.schema_id,
            "size": 0 if data is None else len(data),
        }
        if resolved.version is not None:
            told["schema_version"] = resolved.version
        return _Part(data, told)

    def _outcome(self, message: Any, key: _Part, value: _Part) -> Outcome:
        found: Outcome = {
            "error_code": 200,
            "cluster_id": self._cluster_id,
            "topic_name": self._topic,
            "partition_id": message.partition(),
            "offset": message.offset(),
            "timestamp": iso(message.timestamp()[1]),
        }
        if key.told is not None:
            found["key"] = key.told
        if value.told is not None:
            found["value"] = value.told
        return found


def line(outcome: Outcome) -> bytes:
    """As bytes at once: many answers may wait for a client that reads slowly."""
    return orjson.dumps(outcome, option=orjson.OPT_APPEND_NEWLINE)


def _spec(given: dict[str, Any]) -> SchemaSpec:
    """HttpError 400 for what says two different things."""
    format_ = bodies.text(given, "type", None)
    if format_ is not None and format_ not in FORMATS:
        raise HttpError(400, f"type must be one of {', '.join(FORMATS)}, not '{format_[:50]}'")
    spec = SchemaSpec(
        format_,
        bodies.text(given, "schema", None),
        bodies.number(given, "schema_id", None),
        bodies.number(given, "schema_version", None),
        bodies.text(given, "subject", None),
        bodies.text(given, "subject_name_strategy", None),
    )
    if format_ is not None and format_ not in WITH_SCHEMA:
        for name in _OF_SCHEMAS:
            if given.get(name) is not None:
                raise HttpError(400, f"'type={format_}' cannot be used with '{name}'.")
    if spec.subject is not None and spec.strategy is not None:
        raise HttpError(400, "Only one of 'subject_name_strategy' or 'subject' can be used.")
    if sum(one is not None for one in (spec.schema_id, spec.schema_version, spec.text)) > 1:
        raise HttpError(400, "Only one of 'schema_id', 'schema_version' or 'schema' can be used.")
    if format_ in WITH_SCHEMA and spec.text is None:
        raise HttpError(
            400, f"'type={format_}' needs 'schema'; with an id, a version or a subject leave 'type' out."
        )
    return spec


def _headers(record: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    given = bodies.items(record, "headers", [])
    if len(given) > MAX_HEADERS:
        raise HttpError(400, f"a record has at most {MAX_HEADERS} headers")
    return [
        (bodies.text(one, "name"), write_binary(one.get("value")))
        for one in bodies.objects(given, {"name", "value"})
    ]


def _timestamp_ms(given: Any) -> int:
    """0: now."""
    if given is None:
        return 0
    try:
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            ms = round(given * 1000)  # as Jackson has it: seconds
        else:
            when = datetime.fromisoformat(given)
            ms = round(when.replace(tzinfo=when.tzinfo or UTC).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        raise bodies.not_of_type(given, "java.time.Instant") from None
    if not 0 <= ms <= bodies.LONG_MAX:
        raise bodies.not_of_type(given, "java.time.Instant")
    return ms


@functools.lru_cache(64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def iso(timestamp_ms: int) -> str:
    """`2021-02-05T19:14:42.017Z`."""
    seconds, ms = divmod(timestamp_ms, 1000)
    try:
        return f"{_second(seconds)}.{ms:03}Z"
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
