"""One table that a task writes to: rows in memory, files that are written, and commits."""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table

from penstock.client.patience import Backoff
from penstock.connect.connectors.columns import fitted, joined
from penstock.connect.connectors.lake.catalogs import reaching
from penstock.connect.connectors.lake.evolving import columns_of, evolve, make_table
from penstock.connect.connectors.lake.offsets import (
    COMMIT_ID,
    PREFIX,
    Offsets,
    has_commit,
    kept_offsets,
    offsets_of,
    shown,
)
from penstock.connect.connectors.lake.partitions import PartitionField
from penstock.connect.errors import ConnectError, DataError, RetriableError
from penstock.connect.interface import TopicPlace

log = logging.getLogger("penstock.connect")

FILE_BYTES: Final = 128 << 20
"""So much in memory, and a file is written before the next commit."""
RETRIES: Final = Backoff(0.05, factor=2, max_s=2, jitter=0.5)
RETRIES_OF_PYICEBERG: Final = "commit.retry.num-retries"


class Overtaken(ConnectError):
    """Another task has committed records of the same partition: this one begins anew, at what is in the table."""


class Rows(NamedTuple):
    """Of one partition, in its order."""

    place: TopicPlace
    table: pa.Table
    offsets: Sequence[int]

    def since(self, offset: int) -> Rows:
        if not self.offsets or self.offsets[0] >= offset:
            return self
        first = next((row for row, each in enumerate(self.offsets) if each >= offset), len(self.offsets))
        return self._replace(table=self.table.slice(first), offsets=self.offsets[first:])


class _Pending(NamedTuple):
    """One snapshot, whole: what is added meanwhile comes with the next."""

    commit_id: str
    files: Sequence[Any]
    ends: Offsets


@dataclass(frozen=True)
class Making:
    """How tables are made and changed."""

    creates: bool = False
    evolves: bool = False
    all_optional: bool = False
    properties: Mapping[str, str] | None = None
    write_properties: Mapping[str, str] | None = None
    timeout_s: float = 30.0


class LakeTable:
    def __init__(
        self,
        catalog: Catalog,
        name: str,
        connector: str,
        making: Making,
        partitions: Sequence[PartitionField],
    ) -> None:
        self.name: Final = name
        self._catalog, self._connector, self._making = catalog, connector, making
        self._partitions = partitions
        self._table: Table | None = None
        self._columns: pa.Schema | None = None
        self._committed: Offsets = {}
        self._next: Offsets = {}
        self._rows: list[pa.Table] = []
        self._bytes = 0
        self._files: list[Any] = []
        self._pending: _Pending | None = None

    def open(self, places: Sequence[TopicPlace]) -> Offsets:
        """Where to go on, of those that the table knows. RetriableError."""
        with reaching(f"the table {self.name}"):
            try:
                self._load()
            except NoSuchTableError:
                return {}
            assert self._table is not None
            found = offsets_of(self._table, self._connector)
        for place in places:
            self._forget(place)
            if place in found:
                self._committed[place] = self._next[place] = found[place]
        return {place: found[place] for place in places if place in found}

    def close(self, places: Sequence[TopicPlace]) -> None:
        for place in places:
            self._forget(place)

    def add(self, rows: Rows) -> None:
        """Those of `fit`. What is there already is left out. RetriableError."""
        rows = rows.since(self._next.get(rows.place, 0))
        if not rows.offsets:
            return
        self._rows.append(rows.table)
        self._bytes += rows.table.nbytes
        self._next[rows.place] = rows.offsets[-1] + 1
        if self._bytes >= FILE_BYTES:
            self._write()

    def commit(self) -> None:
        """All that was added. RetriableError, Overtaken."""
        if self._pending is not None:  # nobody knows whether it was committed
            self._finish(self._pending)
        self._write()
        if self._files:
            self._pending = _Pending(str(uuid.uuid4()), self._files, dict(self._next))
            self._files = []
            self._finish(self._pending)

    def _finish(self, pending: _Pending) -> None:
        deadline_s = time.monotonic() + self._making.timeout_s
        attempt = 0
        while not self._try_commit(pending):
            attempt += 1
            if time.monotonic() >= deadline_s:
                raise RetriableError(f"{self.name}: others commit all the time")
            time.sleep(RETRIES.delay_s(attempt, random.random))
        self._committed.update(pending.ends)
        self._pending = None

    def _try_commit(self, pending: _Pending) -> bool:
        table = self._table
        assert table is not None
        with reaching(f"the table {self.name}"):
            table.refresh()
            if has_commit(table, pending.commit_id):  # it was, and the answer did not come
                return True
            found = offsets_of(table, self._connector)
            for place in pending.ends:
                if found.get(place) != self._committed.get(place):
                    raise Overtaken(f"{self.name}: another task has written {place[0]}-{place[1]}")
            said = shown({**found, **pending.ends})
            # pyiceberg would commit again on top of what it has not looked at.
            table.metadata.properties[RETRIES_OF_PYICEBERG] = "0"
            summary = {
                **kept_offsets(table),
                PREFIX + self._connector: said,
                COMMIT_ID: pending.commit_id,
            }
            try:
                with table.transaction() as changing:
                    changing.set_properties({PREFIX + self._connector: said})
                    with changing.update_snapshot(snapshot_properties=summary).fast_append() as append:
                        for file in pending.files:
                            append.append_data_file(file)
            except CommitFailedException as error:
                log.debug("%s: %s", self.name, error)
                return False
            return True

    def _write(self) -> None:
        """To data files, which nobody sees before the commit."""
        if not self._rows:
            return
        table = self._table
        assert table is not None
        assert self._columns is not None
        data = joined([self._as_columns(each) for each in self._rows])
        metadata = table.metadata
        if self._making.write_properties:
            metadata = metadata.model_copy(
                update={"properties": {**metadata.properties, **self._making.write_properties}}
            )
        with reaching(f"the store of {self.name}"):
            self._files += list(_dataframe_to_data_files(metadata, data, table.io))
        self._rows.clear()
        self._bytes = 0

    def fit(self, rows: Rows) -> Rows:
        """In the columns of the table, which may be made or changed for it. DataError, RetriableError."""
        data = rows.table
        if self._table is None:
            self._make(data)
        assert self._table is not None
        assert self._columns is not None
        if self._making.evolves:
            self._evolve(data)
        return rows._replace(table=self._as_columns(data))

    def _evolve(self, data: pa.Table) -> None:
        assert self._table is not None
        for _ in range(5):
            assert self._columns is not None
            with reaching(f"the table {self.name}"):
                try:
                    if evolve(self._table, self._columns, data):
                        self._load()
                    return
                except CommitFailedException:
                    self._load()
                except ValueError as error:
                    raise DataError(f"{self.name}: {error}") from None
        raise RetriableError(f"{self.name}: others change the table all the time")

    def _as_columns(self, data: pa.Table) -> pa.Table:
        assert self._columns is not None
        if data.schema.equals(self._columns):
            return data
        arrays = []
        for field in self._columns:
            at = data.schema.get_field_index(field.name)
            if at < 0:
                array = pa.nulls(data.num_rows, field.type)
            else:
                try:
                    array = fitted(data.column(at), field.type)
                except DataError as error:
                    raise DataError(f"{self.name}: {field.name}: {error}") from None
            if not field.nullable and array.null_count:
                raise DataError(f"{self.name}: {field.name} is null, and the table wants a value")
            arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=self._columns)

    def _make(self, data: pa.Table) -> None:
        with reaching(f"the table {self.name}"):
            try:
                self._load()
                return
            except NoSuchTableError:
                pass
            if not self._making.creates:
                raise ConnectError(
                    f"there is no table {self.name}: make it, or let iceberg.tables.auto-create-enabled=true do it"
                )
            if not data.column_names:
                raise DataError(f"{self.name}: no table is made of records without fields")
            try:
                self._table = make_table(
                    self._catalog, self.name, data.schema, partitions=self._partitions,
                    all_optional=self._making.all_optional, properties=dict(self._making.properties or {}),
                )  # fmt: skip
            except ValueError as error:
                raise ConnectError(f"the table {self.name} cannot be made: {error}") from error
            self._columns = columns_of(self._table)

    def _load(self) -> None:
        self._table = self._catalog.load_table(self.name)
        self._columns = columns_of(self._table)

    def _forget(self, place: TopicPlace) -> None:
        self._committed.pop(place, None)
        self._next.pop(place, None)
