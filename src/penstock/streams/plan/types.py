"""The types of columns, as ksqlDB's SQL has them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BYTES = "BYTES"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"


@dataclass(frozen=True, slots=True)
class SqlType:
    """`str` gives it as SQL: `ARRAY<DECIMAL(4, 2)>`, as ksqlDB writes it in messages and headers of queries."""

    kind: Kind
    precision: int = 0  # of DECIMAL
    scale: int = 0
    key: SqlType | None = None  # of MAP
    element: SqlType | None = None  # of ARRAY; the values of MAP
    fields: tuple[tuple[str, SqlType], ...] = ()  # of STRUCT

    def __str__(self) -> str:
        match self.kind:
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision}, {self.scale})"
            case Kind.ARRAY:
                return f"ARRAY<{self.element}>"
            case Kind.MAP:
                return f"MAP<{self.key}, {self.element}>"
            case Kind.STRUCT:
                return "STRUCT<" + ", ".join(f"`{name}` {type_}" for name, type_ in self.fields) + ">"
            case _:
                return self.kind.value

    def field(self, name: str) -> SqlType | None:
        return next((type_ for each, type_ in self.fields if each == name), None)


BOOLEAN = SqlType(Kind.BOOLEAN)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
DOUBLE = SqlType(Kind.DOUBLE)
STRING = SqlType(Kind.STRING)
BYTES = SqlType(Kind.BYTES)
TIME = SqlType(Kind.TIME)
DATE = SqlType(Kind.DATE)
TIMESTAMP = SqlType(Kind.TIMESTAMP)


def decimal(precision: int, scale: int) -> SqlType:
    return SqlType(Kind.DECIMAL, precision=precision, scale=scale)


def array(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


def map_of(key: SqlType, value: SqlType) -> SqlType:
    return SqlType(Kind.MAP, key=key, element=value)


def struct(*fields: tuple[str, SqlType]) -> SqlType:
    return SqlType(Kind.STRUCT, fields=fields)
