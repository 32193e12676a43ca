"""Values that begin with the id of a schema, as a column of the reader's types.

    values = reader_of(Registry("http://localhost:8081"), schema)
    found = values.read(batch.column("value"))

Schemas that values were written with are asked for by their ids, once in a process. A registry that does not answer, or does
not know an id, makes rows null that are in need of it, with the reason; it is asked again a while later.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from penstock.arrow.registry_schemas import Registry, SchemaText, format_module, with_references
from penstock.client.errors import Refused, Unreachable, UserError

MAX_READERS: Final = 32
MAX_WRITERS: Final = 2_000
"""Schemas that one reader knows programs for; with more it begins anew."""
MAX_FAILED_LOOKUPS: Final = 20
"""Of one batch: values that are no values with ids do not make a request each."""
MAX_FAILED_IDS: Final = 10_000
FAILED_FOR_S: Final = 30.0
AWAY_FOR_S: Final = 5.0

Array = np.ndarray[Any, np.dtype[Any]]


class FoundRows(Protocol):
    """What a format's reader gives: penstock.records.columnar.avro_columns.Found."""

    @property
    def column(self) -> pa.Array: ...

    @property
    def reasons(self) -> Array: ...

    def why(self, row: int) -> str: ...


class FormatReader(Protocol):
    """Of one reader's schema; see the readers of records.columnar."""

    needs_writers: bool
    """Whether values are read by the schema that they were written with."""

    @property
    def type(self) -> pa.DataType: ...

    def add(self, schema_id: int, writer: SchemaText) -> None:
        """ValueError when the reader's schema cannot read what it has written."""

    def knows(self, schema_id: int) -> bool: ...

    def ids(self, column: pa.BinaryArray) -> Array: ...

    def read(self, column: pa.BinaryArray, ids: Array) -> FoundRows: ...


class Typed(NamedTuple):
    column: pa.Array
    why: dict[int, str]
    """By row: why it is null although there is a value."""

    def errors(self) -> pa.StringArray:
        if not self.why:
            return pa.nulls(len(self.column), pa.string())
        return pa.array([self.why.get(row) for row in range(len(self.column))], pa.string())


class _Failed(NamedTuple):
    why: str
    until_s: float


def column_type(schema: SchemaText) -> pa.DataType:
    """UserError where no column can be made of it."""
    return _format_reader(schema).type


def reader_of(registry: Registry, schema: SchemaText) -> RegistryValues:
    """The one of this process."""
    with _lock:
        found = _readers.get((registry, schema))
        if found is None:
            found = _readers[registry, schema] = RegistryValues(registry, schema)
            while len(_readers) > MAX_READERS:
                _readers.popitem(last=False)
        return found


class RegistryValues:
    def __init__(self, registry: Registry, schema: SchemaText) -> None:
        self._registry = registry
        self._schema = schema
        self._begin()
        self._failed: dict[int, _Failed] = {}
        self._away_until_s = 0.0
        self._away = ""
        self._turn = Lock()
        self.type: Final = self._reader.type

    def _begin(self) -> None:
        self._reader = _format_reader(self._schema)
        self._known = 0
        if self._schema.id >= 0:
            self._reader.add(self._schema.id, self._schema)

    def read(self, column: pa.BinaryArray) -> Typed:
        """One at a time: the programs grow with what is met."""
        with self._turn:
            ids = self._reader.ids(column)
            if self._reader.needs_writers:
                self._look_up(ids)
            found = self._reader.read(column, ids)
            rows = np.flatnonzero(found.reasons)
            why = {int(row): self._why(int(ids[row])) or found.why(int(row)) for row in rows}
            return Typed(found.column, why)

    def _why(self, schema_id: int) -> str | None:
        if schema_id < 0 or not self._reader.needs_writers or self._reader.knows(schema_id):
            return None
        failed = self._failed.get(schema_id)
        return failed.why if failed is not None else self._away or None

    def _look_up(self, ids: Array) -> None:
        first = ids[0] if len(ids) else -1
        same = first >= 0 and bool((ids == first).all())
        missing = [
            schema_id
            for schema_id in ([int(first)] if same else np.unique(ids).tolist())
            if schema_id >= 0 and not self._reader.knows(schema_id)
        ]
        if not missing:
            return
        if self._known + len(missing) > MAX_WRITERS:
            self._begin()
            missing = [schema_id for schema_id in np.unique(ids).tolist() if schema_id >= 0]
        if len(self._failed) > MAX_FAILED_IDS:
            self._failed.clear()
        failures = 0
        for schema_id in missing:
            now_s = time.monotonic()
            failed = self._failed.get(schema_id)
            if failed is not None and now_s < failed.until_s:
                continue
            if failures >= MAX_FAILED_LOOKUPS:
                self._failed[schema_id] = _Failed("too many schemas of these values are not known", now_s)
            elif now_s >= self._away_until_s:
                failures += not self._ask(schema_id)

    def _ask(self, schema_id: int) -> bool:
        """Whether values with this id can be read now."""
        self._failed.pop(schema_id, None)
        try:
            client = self._registry.client()
            writer = with_references(client, client.by_id(schema_id))
            if writer.kind != self._schema.kind:
                raise ValueError(f"it is {writer.kind}, not {self._schema.kind}")
            self._reader.add(schema_id, writer)
        except Unreachable as error:
            self._away, self._away_until_s = str(error), time.monotonic() + AWAY_FOR_S
            return False
        except (Refused, ValueError) as error:
            why = f"schema {schema_id}: {error}"
            self._failed[schema_id] = _Failed(why, time.monotonic() + FAILED_FOR_S)
            return False
        self._known += 1
        return True


_readers: OrderedDict[tuple[Registry, SchemaText], RegistryValues] = OrderedDict()
_lock = Lock()


def _format_reader(schema: SchemaText) -> FormatReader:
    try:
        made: FormatReader = format_module(schema.kind).format_reader(schema)
        return made
    except ValueError as error:
        raise UserError(f"the reader's schema: {error}") from None
