"""Records that a visitor writes: one from a form, or several from JSON lines. All of them are checked before the first
one is sent.

    {"key": "1", "value": {"total": 3}, "headers": {"source": "shop"}, "partition": 0, "timestamp": 1700000000000}

A value that is no text is written as JSON, or by its schema where one is chosen. `key_base64` and `value_base64` are
bytes. What an export wrote is read back: its `topic` and `offset` are passed over, and its `partition` and `timestamp`
where the caller says so.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, UserError, one_line
from penstock.client.json_lines import JsonWriter
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import SchemaChoice
from penstock.schemas.model import InvalidValue

MAX_LINES: Final = 100_000
MAX_TEXT_BYTES: Final = 32 << 20
FLUSH_S: Final = 30.0
SETTINGS: Final = {
    "linger.ms": "5", "acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random", "message.timeout.ms": "20000",
    "message.max.bytes": "1000000000", "compression.type": "lz4", "client.id": "penstock-console",
}  # fmt: skip
SCHEMA = "schema"
"""The format of what is written with a schema of the registry."""
WRITE_FORMATS: Final = (
    "text", "json", SCHEMA, "hex", "base64", "short", "integer", "long", "float", "double", "null",
)  # fmt: skip
_LAYOUTS: Final = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d"}


class NewRecord(NamedTuple):
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Written(NamedTuple):
    partition: int
    offset: int


class Encoder:
    """Keys or values of one topic in one format. `schema_id`: None for the newest schema of the subject. Asks the registry."""

    def __init__(
        self,
        form: str,
        topic: str,
        *,
        is_key: bool,
        registry: SchemaRegistry | None = None,
        schema_id: int | None = None,
        message: str | None = None,
    ) -> None:
        if form not in WRITE_FORMATS:
            raise UserError(f"'{form}' is no format to write: there are {', '.join(WRITE_FORMATS)}")
        self._form = form
        self._what = "key" if is_key else "value"
        self._writer: JsonWriter | None = None
        if form == SCHEMA:
            if registry is None:
                raise UserError("the console has no schema registry for this cluster")
            self._writer = JsonWriter(
                registry, topic, SchemaChoice(id=schema_id, message=message), is_key=is_key
            )
            self._writer.check()

    def text(self, text: str) -> bytes | None:
        """What a form has. UserError for what does not fit."""
        try:
            return self._written(text)
        except (ValueError, struct.error) as error:
            raise UserError(f"the {self._what}: {one_line(error)}") from None

    def value(self, value: Any) -> bytes | None:
        """What a line of JSON has."""
        if value is None:
            return None
        if self._writer is not None:
            try:
                return self._writer.write(value)
            except InvalidValue as error:
                raise UserError(f"the {self._what}: {one_line(error)}") from None
        if isinstance(value, str):
            return value.encode("utf-8", "replace") if self._form == "json" else self.text(value)
        if self._form in _LAYOUTS:
            return self.text(str(value))
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    def _written(self, text: str) -> bytes | None:
        form = self._form
        if form == "null":
            return None
        if form == "text":
            return text.encode("utf-8", "replace")
        if form == "json":
            json.loads(text)
            return text.encode("utf-8", "replace")
        if self._writer is not None:
            return self._writer.write_text(text)
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return _bytes(text)
        layout = _LAYOUTS[form]
        return struct.pack(layout, float(text) if layout[1] in "fd" else int(text))


def parse_headers(text: str) -> tuple[tuple[str, bytes | None], ...]:
    """A line for each: `name=value`; `name` alone is a header without a value."""
    found = []
    for line in text.splitlines():
        if line.strip():
            name, is_given, value = line.partition("=")
            if not name.strip():
                raise UserError(f"a header has a name: name=value, not '{line[:40]}'")
            found.append((name.strip(), value.strip().encode() if is_given else None))
    return tuple(found)


def parse_lines(
    text: str, key: Encoder, value: Encoder, *, keeps_partitions: bool = False, keeps_timestamps: bool = False
) -> list[NewRecord]:
    """UserError with the number of the first line that cannot be written; then none of them is."""
    if len(text) > MAX_TEXT_BYTES:
        raise UserError(
            f"at most {MAX_TEXT_BYTES >> 20} MB can be written at once; `penstock produce --file` takes more"
        )
    records: list[NewRecord] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if len(records) >= MAX_LINES:
            raise UserError(
                f"at most {MAX_LINES:,} records can be written at once; `penstock produce --file` takes more"
            )
        try:
            records.append(_of_line(line, key, value, keeps_partitions, keeps_timestamps))
        except (UserError, ValueError, TypeError, RecursionError) as error:
            raise UserError(f"line {number}: {one_line(error)}") from None
    if not records:
        raise UserError(
            'there is no record: write a line such as {"key": "1", "value": {"total": 3}} for each'
        )
    return records


def _of_line(
    line: str, key: Encoder, value: Encoder, keeps_partitions: bool, keeps_timestamps: bool
) -> NewRecord:
    given = json.loads(line)
    if not isinstance(given, dict):
        raise UserError('it is no object such as {"key": "1", "value": {"total": 3}}')
    known = {
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        "key_base64",
        "value",
        "value_base64",
        "headers",
    }
    unknown = sorted(given.keys() - known)
    if unknown:
        raise UserError(
            f"there is no field {unknown[0]!r}: there are key, value, headers, partition and timestamp"
        )
    return NewRecord(
        _part(given, "key", key),
        _part(given, "value", value),
        tuple(_headers(given.get("headers"))),
        _whole(given, "partition") if keeps_partitions else None,
        _whole(given, "timestamp") if keeps_timestamps else None,
    )


def _part(given: Mapping[str, Any], name: str, encoder: Encoder) -> bytes | None:
    encoded = given.get(f"{name}_base64")
    if encoded is not None:
        return _bytes(str(encoded))
    return encoder.value(given.get(name))


def _headers(given: Any) -> Iterator[tuple[str, bytes | None]]:
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if given is not None and not isinstance(given, list):
        raise UserError('headers are an object, or a list of {"name": …, "value": …}')
    for each in given or ():
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise UserError('headers are an object, or a list of {"name": …, "value": …}')
        encoded, value = each.get("value_base64"), each.get("value")
        if encoded is not None:
            yield each["name"], _bytes(str(encoded))
        else:
            yield each["name"], None if value is None else str(value).encode("utf-8", "replace")


def _whole(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{name} is a whole number, not {json.dumps(value)}")
    return value


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise UserError(f"it is not base64: {one_line(error)}") from None


def produce(connection: Connection, topic: str, records: Sequence[NewRecord]) -> list[Written]:
    """Where each of them is now, in their order. Blocks until all are acknowledged by all replicas in sync. Refused
    where one was not written: the message says how many were."""
    from confluent_kafka import KafkaException

    settings = dict(SETTINGS)
    if len(records) <= 10:
        # librdkafka takes half a second to become idempotent: too long for a few, which go one by one instead.
        del settings["enable.idempotence"]
        settings["max.in.flight.requests.per.connection"] = "1"
    producer = connection.producer(settings)
    written: list[Written | None] = [None] * len(records)
    failures: list[Any] = []

    def delivered(place: int, error: Any, message: Any) -> None:
        if error is not None:
            failures.append(error)
        else:
            written[place] = Written(message.partition(), message.offset())

    try:
        for place, record in enumerate(records):
            if failures:
                break
            send_record(
                producer, topic, record, lambda error, message, place=place: delivered(place, error, message)
            )
        left = producer.flush(FLUSH_S)
    except KafkaException as error:
        raise translated(error) from None
    if failures or left:
        done = sum(1 for each in written if each is not None)
        why = (
            failures[0].str().removeprefix("Broker: ").removeprefix("Local: ")
            if failures
            else "no answer in time"
        )
        code = failures[0].code() if failures else -1
        raise Refused(f"{done} of {len(records)} records were written, then: {why}", code=code)
    return [each for each in written if each is not None]


def send_record(producer: Any, topic: str, record: NewRecord, delivered: Any) -> None:
    from penstock.client.record_sender import send

    extra: dict[str, Any] = {}
    if record.partition is not None:
        extra["partition"] = record.partition
    if record.timestamp_ms is not None:
        extra["timestamp"] = record.timestamp_ms
    send(
        producer, topic, key=record.key, value=record.value, headers=list(record.headers) or None, on_delivery=delivered, **extra
    )  # fmt: skip
