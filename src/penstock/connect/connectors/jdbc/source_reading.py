"""One table, or a query, as it is read: asked, streamed in batches, and asked again from where it was."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import inspect, types

from penstock.connect.connectors.jdbc.column_types import MYSQL
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.queries import Keys, Place, Statements, now_of
from penstock.connect.connectors.jdbc.source_columns import (
    SourceColumn,
    column_of,
    columns_of_query,
    instant_of,
)
from penstock.connect.connectors.jdbc.source_settings import BULK, TIMESTAMP, SourceChoices
from penstock.connect.connectors.jdbc.source_tables import TableId
from penstock.connect.data.logical import EPOCH
from penstock.connect.data.schema import Schema, struct_of
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, Hopeless
from penstock.connect.records import SourceRecord

QUERY: Final = "query"
_MAX_BUFFER_ROWS: Final = 1000


class Reading:
    """`due_s` is when it is to be asked next. `open` asks, `poll` gives rows until `is_at_end`, then comes `close`."""

    def __init__(
        self,
        database: Database,
        choices: SourceChoices,
        table: TableId | None,
        offset: Mapping[str, Any] | None,
    ) -> None:
        """Without a table: of the query that is configured."""
        self._database, self._choices, self.table = database, choices, table
        self.partition = partition_of(table)
        quote = database.quote
        if table is None:
            origin = f"({choices.query}) {quote('penstock_query')}"
            if database.family != "sqlite":
                origin = origin.replace("%", "%%")
            self._topic, self._struct_name = choices.prefix, None
        else:
            parts = [quote(part) for part in (table.schema, table.name) if part]
            origin = ".".join(parts) if database.family == "sqlite" else ".".join(parts).replace("%", "%%")
            self._topic, self._struct_name = choices.prefix + table.name, table.name
        self._statements = Statements(database, choices, origin)
        self.place = Place.of(offset)
        if (
            choices.dates
            and self.place.at is None
            and choices.initial_ms is not None
            and choices.initial_ms >= 0
        ):
            self.place = self.place._replace(at=EPOCH + dt.timedelta(milliseconds=choices.initial_ms))
        self._begins_now = choices.dates and self.place.at is None and choices.initial_ms == -1
        self.due_s = 0.0
        self._result: Any = None
        self._rows: Iterator[Sequence[Any]] = iter(())
        self._held: Sequence[Any] | None = None  # the row behind the last one that was given
        self._keys: Keys | None = None
        self._schema: Schema | None = None
        self._columns: list[SourceColumn] = []
        self._key_places: tuple[int | None, tuple[int, ...]] = (None, ())

    @property
    def is_at_end(self) -> bool:
        return self._held is None

    def open(self) -> None:
        """Asks. The connection is at its disposal until `close`."""
        database, choices = self._database, self._choices
        with database.failures(f"cannot read {self.name}"):
            connection = database.connection()
            kinds = self._look()
            until = None
            if choices.dates:
                now = now_of(database)
                if self._begins_now:
                    self.place, self._begins_now = self.place._replace(at=now), False
                until = now - dt.timedelta(milliseconds=choices.delay_ms)
            assert self._keys is not None
            if choices.mode == BULK and self.table is None:
                text = choices.query if database.family == "sqlite" else choices.query.replace("%", "%%")
                statement, values = f"{text} {choices.suffix}".strip(), ()
            else:
                statement, values = self._statements.select(self._keys, self.place, until)
            options = {
                "stream_results": True,
                "max_row_buffer": _MAX_BUFFER_ROWS,
                "yield_per": choices.batch_rows,
            }
            self._result = connection.exec_driver_sql(statement, values, execution_options=options)
            description = self._result.cursor.description
            self._rows = iter(self._result)
            self._describe(description, kinds)
            self._held = next(self._rows, None)

    def poll(self, most: int) -> tuple[list[SourceRecord], list[tuple[SourceRecord, DataError]]]:
        """The next rows, and those that cannot be told."""
        taken: list[Sequence[Any]] = []
        with self._database.failures(f"cannot read {self.name}"):
            while self._held is not None and len(taken) < most:
                taken.append(self._held)
                self._held = next(self._rows, None)
        records, refused = [], []
        for number, row in enumerate(taken):
            following = taken[number + 1] if number + 1 < len(taken) else self._held
            try:
                offset = self._offset_of(row, following)
            except DataError as error:
                raise ConnectError(f"{self.name}: {error}") from None
            try:
                record = self._record(row, offset)
            except (DataError, ValueError, TypeError, OverflowError) as error:
                told = error if isinstance(error, DataError) else DataError(str(error))
                refused.append((SourceRecord(self.partition, offset, self._topic, None), told))
                continue
            records.append(record)
        return records, refused

    def close(self, *, is_ended: bool = False) -> None:
        result, self._result = self._result, None
        self._held, self._rows = None, iter(())
        if result is None:
            return
        if not is_ended and self._database.family == MYSQL:
            _forget_answer(result.cursor)
            self._database.abandon()
            return
        try:
            result.close()
        except Exception:
            self._database.abandon()
        self._database.rollback()

    @property
    def name(self) -> str:
        return "the query" if self.table is None else self.table.full_name

    def _look(self) -> list[tuple[str, Any, bool]]:
        """Name, type and whether it may be null of each column; none for a query."""
        choices, table = self._choices, self.table
        if table is None:
            self._keys = Keys(
                choices.incrementing or None if choices.counts else None,
                [(name, types.DateTime()) for name in choices.timestamps] if choices.dates else [],
            )
            return []
        inspector = inspect(self._database.connection())
        found = inspector.get_columns(table.name, schema=table.schema)
        known = {column["name"]: column for column in found}
        number = None
        if choices.counts:
            number = choices.incrementing or next(
                (column["name"] for column in found if _counts_itself(column)), None
            )
            if number is None and self._database.family == "sqlite":
                key = inspector.get_pk_constraint(table.name, schema=table.schema)["constrained_columns"]
                number = key[0] if len(key) == 1 else None
            if number is None:
                raise Hopeless(f"{self.name} has no column that counts itself: set incrementing.column.name")
        names = [*([number] if number else []), *(choices.timestamps if choices.dates else ())]
        for name in names:
            if name not in known:
                raise ConnectError(f"{self.name} has no column {name}")
        self._keys = Keys(
            number, [(name, known[name]["type"]) for name in choices.timestamps] if choices.dates else []
        )
        if choices.refuses_nulls:
            self._refuse_nulls(known, self._keys, inspector)
        return [(column["name"], column["type"], bool(column["nullable"])) for column in found]

    def _refuse_nulls(self, known: Mapping[str, Any], keys: Keys, inspector: Any) -> None:
        assert self.table is not None
        primary = inspector.get_pk_constraint(self.table.name, schema=self.table.schema)[
            "constrained_columns"
        ]
        if keys.number is not None and known[keys.number]["nullable"] and keys.number not in primary:
            raise Hopeless(
                f"{self.name}: the column {keys.number} may be null, and such rows would never be read: make it NOT NULL, or set "
                "validate.non.null=false"
            )
        if keys.times and all(known[name]["nullable"] for name, _ in keys.times):
            names = ", ".join(name for name, _ in keys.times)
            raise Hopeless(
                f"{self.name}: {names} may be null, and such rows would never be read: make one NOT NULL, or set "
                "validate.non.null=false"
            )

    def _describe(self, description: Sequence[Any], kinds: list[tuple[str, Any, bool]]) -> None:
        choices = self._choices
        if self.table is None:
            sample = _first_rows(self)
            columns = columns_of_query(
                self._database.family, description, sample, choices.mapping, choices.zone
            )
        else:
            by_name = {name: (kind, is_nullable) for name, kind, is_nullable in kinds}
            names = [told[0] for told in description]
            columns = [
                column_of(
                    name,
                    by_name[name][0],
                    is_nullable=by_name[name][1],
                    mapping=choices.mapping,
                    zone=choices.zone,
                )
                for name in names
                if name in by_name
            ]
            if len(columns) != len(names):
                raise ConnectError(f"{self.name} has changed while it was looked at")
        fields = [(column.name, column.schema) for column in columns]
        schema = struct_of(self._struct_name, fields)
        if schema != self._schema:
            self._schema = schema
        self._columns = columns
        names = [column.name for column in columns]
        assert self._keys is not None
        try:
            number = None if self._keys.number is None else names.index(self._keys.number)
            self._key_places = number, tuple(names.index(name) for name, _ in self._keys.times)
        except ValueError:
            raise ConnectError(
                f"{self.name} gives no column {self._keys.number or self._keys.times[0][0]}; it has {', '.join(names)}"
            ) from None

    def _place_of(self, row: Sequence[Any]) -> Place:
        number_place, time_places = self._key_places
        number = None
        if number_place is not None:
            value = row[number_place]
            try:
                number = int(value)
            except (TypeError, ValueError):
                raise DataError(f"{value!r} is no number to go on from") from None
        at = None
        for place in time_places:
            if row[place] is not None:
                read = self._columns[place].read
                value = row[place] if read is None else read(row[place])
                at = instant_of(value, self._choices.zone)
                break
        return Place(number, at)

    def _offset_of(self, row: Sequence[Any], following: Sequence[Any] | None) -> dict[str, Any] | None:
        """Moves on. By times alone, rows of the same time are done only when the last of them is."""
        if not self._choices.dates and not self._choices.counts:
            return None
        place = self._place_of(row)
        is_by_time = self._choices.mode == TIMESTAMP
        if is_by_time and following is not None and self._place_of(following).at == place.at:
            return self.place.offset() or None
        self.place = place
        return place.offset()

    def _record(self, row: Sequence[Any], offset: dict[str, Any] | None) -> SourceRecord:
        assert self._schema is not None
        values = [
            value if value is None or column.read is None else column.read(value)
            for value, column in zip(row, self._columns, strict=True)
        ]
        return SourceRecord(
            self.partition,
            offset,
            self._topic,
            Struct.trusted(self._schema, values),
            value_schema=self._schema,
        )


def _forget_answer(cursor: Any) -> None:
    """PyMySQL reads an answer to its end before it lets go of it, even where the connection is closed."""
    answer = getattr(cursor, "_result", None)
    if answer is not None:
        answer.unbuffered_active, answer.connection = False, None
    cursor.connection = None


def _counts_itself(column: Any) -> bool:
    return (
        column.get("autoincrement") is True
        or column.get("identity") is not None
        or "nextval(" in str(column.get("default") or "")
    )


def _first_rows(reading: Reading) -> list[Sequence[Any]]:
    """Put back behind the look at them."""
    first = list(itertools.islice(reading._rows, reading._choices.batch_rows))
    reading._rows = itertools.chain(first, reading._rows)
    return first


def partition_of(table: TableId | None) -> dict[str, str]:
    """As Confluent's connector has it."""
    return {QUERY: QUERY} if table is None else {"protocol": "1", "table": table.full_name}


def old_partition_of(table: TableId) -> dict[str, str]:
    """Of its versions before 5.0."""
    return {"table": table.name}
