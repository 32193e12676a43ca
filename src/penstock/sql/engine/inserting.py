"""Rows that statements and `/inserts-stream` write into a source's topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, Unreachable
from penstock.sql.analysis.planned import InsertedRow
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.refusals import BAD_REQUEST, SERVER_ERROR, SqlRefused
from penstock.streams.formats.codecs import BadRecord, KeyCodec, ValueCodec, key_codec, value_codec
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.kernel.records import OutputRecord
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind
from penstock.streams.running.first_moment import FirstMomentWriter

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

TIMEOUT_S: Final = 30.0
KEPT: Final = 1000


class Codecs(NamedTuple):
    key: KeyCodec
    value: ValueCodec


class Inserts:
    """The producer of inserted rows, and the codecs of the sources that they went to."""

    def __init__(self, connection: Connection, schemas: SchemaLookup | None) -> None:
        self._connection, self._schemas = connection, schemas
        self._lock = threading.Lock()
        self._producer: Any = None
        self._codecs: dict[Source, Codecs] = {}

    def codecs(self, source: Source) -> Codecs:
        found = self._codecs.get(source)
        if found is None:
            schemas = self._schemas
            found = Codecs(
                key_codec(source.schema, source.formats, window=source.window, topic=source.topic, registry=schemas),
                value_codec(source.schema, source.formats, topic=source.topic, registry=schemas),
            )  # fmt: skip
            if len(self._codecs) >= KEPT:
                self._codecs.clear()
            self._codecs[source] = found
        return found

    def write(self, row: InsertedRow) -> None:
        """Until all in-sync replicas have it. BadRecord, SchemasUnavailable, Refused, Unreachable."""
        from confluent_kafka import KafkaException

        codecs = self.codecs(row.source)
        key = codecs.key.encode(row.key, row.window)
        value = codecs.value.encode(row.value)
        told: list[Any] = []
        done = threading.Event()

        def report(error: Any, message: Any) -> None:
            told.append(error)
            done.set()

        timestamp = int(time.time() * 1000) if row.timestamp is None else row.timestamp
        if timestamp == 0:
            self._write_first_moment(OutputRecord(row.source.topic, key, value, 0))
            return
        producer = self._ready()
        try:
            producer.produce(row.source.topic, value=value, key=key, timestamp=timestamp, on_delivery=report)
        except KafkaException as error:
            raise translated(error) from None
        deadline_s = time.monotonic() + TIMEOUT_S
        try:
            while not done.is_set() and time.monotonic() < deadline_s:
                producer.poll(0.05)
        except KafkaException as error:  # it is of no more use: its login may write nowhere
            with self._lock:
                self._producer = None
            raise translated(error) from None
        if not told:
            raise Unreachable(f"the topic {row.source.topic} could not be written within {TIMEOUT_S:.0f} s.")
        if told[0] is not None:
            raise Refused(
                f"Could not write the row into {row.source.topic}: {told[0].str()}", code=told[0].code()
            )

    def _write_first_moment(self, record: OutputRecord) -> None:
        """librdkafka takes a time of 0 for none."""
        connection = self._connection
        writer = FirstMomentWriter(connection.bootstrap, connection.properties)
        try:
            writer.send(record)
        finally:
            writer.close()

    def _ready(self) -> Any:
        with self._lock:
            if self._producer is None:
                self._producer = self._connection.producer(
                    {"linger.ms": "0", "enable.idempotence": "true", "partitioner": "murmur2_random"}
                )
            return self._producer


def insert(engine: Engine, row: InsertedRow) -> None:
    engine.inserts.write(row)


def row_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object by the names of columns, as `/inserts-stream` takes it: in any case, unless quoted with backticks."""
    return {
        name[1:-1] if name.startswith("`") and name.endswith("`") else name.upper(): value
        for name, value in document.items()
    }


class RowInserter:
    """For `/inserts-stream`: objects of one stream."""

    def __init__(self, engine: Engine, target: str, properties: Mapping[str, Any] | None) -> None:
        engine.check_takes_changes()
        name = target[1:-1] if target.startswith("`") and target.endswith("`") else target.upper()
        source = engine.state.sources.get(name)
        if source is None:
            raise SqlRefused(f"Cannot insert values into an unknown stream: {target}", code=BAD_REQUEST)
        if source.kind is not SourceKind.STREAM:
            raise SqlRefused(f"Cannot insert into a table: {name}", code=BAD_REQUEST)
        self._engine = engine
        self._source = source
        columns = Schema((), (*source.schema.key, *source.schema.value))
        self._names = {column.name for column in columns.value}
        # A row is read as JSON of the source's columns is, whatever its format is.
        self._reader = value_codec(columns, Formats(Format("JSON"), Format("JSON")), topic=source.topic)

    def insert(self, document: Any) -> None:
        """Until it is written. SqlRefused."""
        if not isinstance(document, dict):
            raise SqlRefused("A row must be a JSON object", code=BAD_REQUEST)
        given = row_of(document)
        unknown = sorted(set(given) - self._names)
        if unknown:
            raise SqlRefused(f"Column {unknown[0]} is not a column of {self._source.name}", code=BAD_REQUEST)
        if given.keys() & dict(self._source.schema.headers).keys():
            raise SqlRefused("Cannot insert into header columns", code=BAD_REQUEST)
        try:
            values = self._reader.decode(orjson.dumps(given)) or ()
            count = len(self._source.schema.key)
            key = values[:count] if any(each is not None for each in values[:count]) else None
            self._engine.inserts.write(InsertedRow(self._source, key, values[count:]))
        except (StatementRefused, BadRecord, Refused) as error:
            raise SqlRefused(str(error), code=BAD_REQUEST) from None
        except SchemasUnavailable as error:
            is_refused = isinstance(error.__cause__, Refused)
            raise SqlRefused(str(error), code=BAD_REQUEST if is_refused else SERVER_ERROR) from None
        except Unreachable as error:
            raise SqlRefused(str(error), code=SERVER_ERROR) from None
