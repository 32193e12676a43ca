"""The columnar lane of sinks: messages that become Arrow tables without a Python object for each record.

A task that writes columns takes part by two more methods (`TakesColumns`). The lane is used where nothing has to look at single
records: no transforms, and values that are JSON without schemas, or Avro through the registry. Keys and headers are not read.

Where a batch does not go into columns (a value that is no JSON, types that do not go together, an unknown schema) all of it comes
as records, one by one, as in any other sink: so errors go where `errors.…` says.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.json

from penstock.connect.connectors.columns import arrow_type, fitted, known_columns
from penstock.connect.converters.json import SCHEMAS_ENABLE, JsonConverter
from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError
from penstock.connect.interface import Converter
from penstock.connect.records import SinkRecord
from penstock.connect.tasks.assembly import Assembly
from penstock.connect.tasks.failing import Failing
from penstock.connect.tasks.sink_converting import SinkConversion

AT_ONCE: Final = 20_000  # records in a call, unless consumer.override.max.poll.records says otherwise
MAX_FIELDS: Final = 2_000
COLLECT_AFTER: Final = 5 * AT_ONCE


class NotColumns(DataError):
    """These records have to come one by one."""


class Columns(NamedTuple):
    """Values of one partition, in its order, a row each. Those that are null have no row."""

    topic: str
    partition: int
    schema: Schema | None
    table: pa.Table
    messages: Sequence[Any]
    """Of librdkafka: what each row was made of."""

    @property
    def original(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.messages[0].offset() if self.messages else -1

    def since(self, offset: int) -> Columns:
        """Without what is before it."""
        if not self.messages or self.messages[0].offset() >= offset:
            return self
        first = next(
            (row for row, each in enumerate(self.messages) if each.offset() >= offset), len(self.messages)
        )
        return self._replace(table=self.table.slice(first), messages=self.messages[first:])


@runtime_checkable
class TakesColumns(Protocol):
    """What a sink task has besides `put`."""

    def takes_columns(self) -> bool:
        """Whether its configuration lets it. Asked once, before `start`."""

    def put_columns(self, pieces: Sequence[Columns]) -> None:
        """As `put`. NotColumns, before anything of them is taken: they come again by `put`. After a RetriableError they may come
        again either way, so the task looks at their offsets."""


Decode = Callable[[Sequence[bytes]], Sequence[tuple[Schema | None, pa.Table]]]
"""Values to tables, one below the other. NotColumns."""


class ColumnarConversion:
    """In place of `SinkConversion`: gives either records or Columns, never both at once."""

    def __init__(self, made: Assembly, failing: Failing, decode: Decode) -> None:
        self._plain = SinkConversion(made, failing)
        self._task = made.task
        self._decode = decode

    def convert(self, messages: Sequence[Any]) -> Sequence[SinkRecord | Columns]:
        try:
            return [piece for topic, run in _by_topic(messages) for piece in self._pieces(topic, run)]
        except DataError:
            return self._plain.convert(messages)

    def put(self, items: Sequence[Any]) -> None:
        """To the task, as records where it does not take the columns."""
        if items and isinstance(items[0], Columns):
            try:
                self._task.put_columns(items)
                return
            except NotColumns:
                items = self._plain.convert([each for piece in items for each in piece.messages])
        self._task.put(items)

    @staticmethod
    def count(items: Sequence[Any]) -> int:
        return sum(len(each.messages) if isinstance(each, Columns) else 1 for each in items)

    def _pieces(self, topic: str, messages: list[Any]) -> Iterator[Columns]:
        """Decoded at once, and cut where another partition begins."""
        values = [message.value() for message in messages]
        if None in values:
            if not getattr(self._task, "skips_nulls", False):
                raise NotColumns("null values come as records")
            messages = [message for message in messages if message.value() is not None]
            values = [value for value in values if value is not None]
        if not values:
            return
        first = 0
        for schema, table in self._decode(values):
            of_table = messages[first : first + table.num_rows]
            first += table.num_rows
            start = 0
            for partition, run in groupby(of_table, lambda message: message.partition()):
                taken = list(run)
                yield Columns(topic, partition, schema, table.slice(start, len(taken)), taken)
                start += len(taken)


def conversion_of(made: Assembly, failing: Failing) -> SinkConversion | ColumnarConversion:
    task = made.task
    if made.apply is None and isinstance(task, TakesColumns) and task.takes_columns():
        decode = decoder_of(made.value)
        if decode is not None:
            _calm_collector()
            return ColumnarConversion(made, failing, decode)
    return SinkConversion(made, failing)


def _calm_collector() -> None:
    """Thousands of messages at once, without a cycle among them, would have the garbage collector look at all objects again and
    again: a third of the lane's CPU time. It still comes when as many objects are left over."""
    first, *others = gc.get_threshold()
    if 0 < first < COLLECT_AFTER:
        gc.set_threshold(COLLECT_AFTER, *others)


def decoder_of(converter: Converter) -> Decode | None:
    """None: it has none."""
    if type(converter) is JsonConverter:
        return None if converter.values[SCHEMAS_ENABLE] else JsonColumns()
    try:
        from penstock.connect.tasks.avro_columns import avro_columns
    except ModuleNotFoundError:
        return None
    return avro_columns(converter)


class JsonColumns:
    """Objects without a schema. Types are what the values of a batch have; texts stay texts, also those that look like times."""

    def __init__(self) -> None:
        self._texts: dict[str, pa.DataType] = {}
        """Columns that Arrow would take for times."""
        self._order: dict[str, int] = {}

    def __call__(self, values: Sequence[bytes]) -> list[tuple[None, pa.Table]]:
        blob = b"\n".join(values)
        _check_utf8(blob)
        table = self._read(blob)
        for name in table.column_names:
            self._order.setdefault(name, len(self._order))
        times = {each.name: _as_texts(each.type) for each in table.schema if _has_times(each.type)}
        if times:
            self._texts |= times
            table = self._read(blob)
        if len(self._order) > MAX_FIELDS:
            self._order = {name: at for at, name in enumerate(table.column_names)}
        if table.num_rows != len(values) or len(table.schema) > MAX_FIELDS:
            raise NotColumns("a value is no single JSON object")
        names = sorted(table.column_names, key=self._order.__getitem__)
        columns = {name: table.column(name) for name in names}
        return [(None, known_columns(columns, table.num_rows))]

    def _read(self, blob: bytes) -> pa.Table:
        # One block: an end of line within a value does no harm then.
        reading = pa.json.ReadOptions(use_threads=False, block_size=len(blob) + 2)
        try:
            if self._texts:
                try:
                    explicit = pa.schema(list(self._texts.items()))
                    return pa.json.read_json(
                        io.BytesIO(blob), reading, pa.json.ParseOptions(explicit_schema=explicit)
                    )
                except pa.ArrowException:
                    self._texts.clear()
            return pa.json.read_json(io.BytesIO(blob), reading)
        except pa.ArrowException as error:
            raise NotColumns(str(error)) from None


def _check_utf8(blob: bytes) -> None:
    try:
        pa.array([blob], pa.large_binary()).cast(pa.large_string())
    except pa.ArrowException:
        raise NotColumns("a value is no UTF-8") from None


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _has_times(kind.value_type)
    return bool(pa.types.is_timestamp(kind))


def _as_texts(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_as_texts(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_texts(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _by_topic(messages: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Partition by partition."""
    found: dict[tuple[str, int], list[Any]] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), []).append(message)
    for topic, places in groupby(sorted(found), lambda place: place[0]):
        yield topic, [message for place in places for message in found[place]]


def struct_table(column: pa.StructArray, schema: Schema) -> pa.Table:
    """A column of structs as the table that `columns.table_of` would make of these values. NotColumns."""
    try:
        return pa.Table.from_struct_array(fitted(column, arrow_type(schema)))
    except DataError as error:
        raise NotColumns(str(error)) from None
