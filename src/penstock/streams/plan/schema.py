"""The columns of a stream or table, and what a row can be asked besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.streams.plan.types import BIGINT, INTEGER, SqlType

ROWTIME: Final = "ROWTIME"
ROWPARTITION: Final = "ROWPARTITION"
ROWOFFSET: Final = "ROWOFFSET"
WINDOWSTART: Final = "WINDOWSTART"
WINDOWEND: Final = "WINDOWEND"
PSEUDO_COLUMNS: Final[dict[str, SqlType]] = {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
WINDOW_BOUNDS: Final[dict[str, SqlType]] = {WINDOWSTART: BIGINT, WINDOWEND: BIGINT}


class Column(NamedTuple):
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Schema:
    """Names are unique over key and value. A row has the values of `key` and of `value`, each in this order.

    `headers` are value columns that are filled from the record's headers: name → the header's key, or None for all of them
    (`ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>`). They are in `value`, too.
    """

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: tuple[tuple[str, str | None], ...] = ()

    def type_of(self, name: str) -> SqlType | None:
        return next((column.type for column in (*self.key, *self.value) if column.name == name), None)

    def is_key(self, name: str) -> bool:
        return any(column.name == name for column in self.key)

    def __str__(self) -> str:
        """As headers of queries have it: `ID` STRING KEY, `V` INTEGER."""
        return ", ".join(
            [f"`{column.name}` {column.type} KEY" for column in self.key]
            + [f"`{column.name}` {column.type}" for column in self.value]
        )
