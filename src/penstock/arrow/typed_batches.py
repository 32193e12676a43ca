"""In place of the columns `key` and `value` of a batch: what a schema of a registry says they are."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from penstock.arrow.json_values import BadValue, shown
from penstock.arrow.registry_schemas import Registry, SchemaText
from penstock.arrow.registry_values import reader_of
from penstock.records.columnar.columns import OFFSET, PARTITION, TOPIC


class Wanted(Protocol):
    """What `penstock.spark.typed_columns.TypedColumn` has."""

    @property
    def name(self) -> str: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def schema(self) -> SchemaText: ...

    @property
    def fails_fast(self) -> bool: ...

    @property
    def raw_name(self) -> str | None: ...

    @property
    def error_name(self) -> str | None: ...


def add_typed(columns: dict[str, pa.Array], wanted: Wanted) -> None:
    """BadValue for the first that cannot be read, if `fails_fast`: its place needs the columns topic, partition and offset."""
    raw = columns[wanted.name]
    found = reader_of(wanted.registry, wanted.schema).read(raw)
    if wanted.fails_fast and found.why:
        row = min(found.why)
        place = f"{columns[TOPIC][row]}-{columns[PARTITION][row]} at offset {columns[OFFSET][row]}"
        raise BadValue(
            f"the {wanted.name} of {place} is not read: {found.why[row]}: {shown(raw[row].as_py())}"
        )
    columns[wanted.name] = found.column
    if wanted.raw_name is not None:
        columns[wanted.raw_name] = raw
    if wanted.error_name is not None:
        columns[wanted.error_name] = found.errors()
