"""Types of columns and casts."""

from __future__ import annotations

from typing import Final

from penstock.sql.parsing.reading import Reader
from penstock.sql.parsing.statements import NamedType
from penstock.sql.parsing.tokens import TokenKind
from penstock.streams.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Kind,
    SqlType,
    array,
    decimal,
    map_of,
    struct,
)

_BASE: Final = {
    "BOOLEAN": BOOLEAN,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "VARCHAR": STRING,
    "STRING": STRING,
    "BYTES": BYTES,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}


def sql_type(reader: Reader) -> SqlType:
    found = _one_type(reader)
    while reader.is_next("ARRAY") and reader.ahead().text != "<":
        reader.take()
        found = array(found)
    return found


def _one_type(reader: Reader) -> SqlType:
    if reader.accept("ARRAY", "<"):
        element = sql_type(reader)
        reader.expect(">")
        return array(element)
    if reader.accept("MAP", "<"):
        key = sql_type(reader)
        reader.expect(",")
        value = sql_type(reader)
        reader.expect(">")
        return map_of(key, value)
    if reader.is_next("STRUCT") and reader.ahead().text in ("<", "<>"):
        return _struct(reader)
    if reader.accept("DECIMAL", "("):
        return _decimal(reader)
    return _named(reader)


def _struct(reader: Reader) -> SqlType:
    reader.take()
    if reader.accept("<>"):
        return struct()
    reader.expect("<")
    if reader.accept(">"):
        return struct()
    place = reader.token.place
    fields = reader.listed(lambda: (reader.name(), sql_type(reader)))
    reader.expect(">")
    for at, (name, type_) in enumerate(fields):
        twice = next((each for each in fields[:at] if each[0] == name), None)
        if twice:
            reader.refuse(
                f"Duplicate field names found in STRUCT: '`{name}` {twice[1]}' and '`{name}` {type_}'", place
            )
    return struct(*fields)


def _decimal(reader: Reader) -> SqlType:
    place = reader.token.place
    precision = reader.integer()
    reader.expect(",")
    scale = reader.integer()
    reader.expect(")")
    if precision <= 0:
        reader.refuse(f"DECIMAL precision must be >= 1: DECIMAL({precision},{scale})", place)
    if scale < 0:
        reader.refuse(f"DECIMAL scale must be >= 0: DECIMAL({precision},{scale})", place)
    if precision < scale:
        reader.refuse(f"DECIMAL precision must be >= scale: DECIMAL({precision},{scale})", place)
    return decimal(precision, scale)


def _named(reader: Reader) -> SqlType:
    if not reader.is_name():
        reader.refuse_here()
    name = reader.name()
    if reader.accept("("):
        reader.listed(lambda: _parameter(reader))
        if not reader.accept(")"):
            reader.refuse("Syntax Error\nExpecting {',', ')'}")
    found = _BASE.get(name.upper())
    return found or NamedType(Kind.STRUCT, name=name)


def _parameter(reader: Reader) -> None:
    """Of VARCHAR(10), VARCHAR(STRING): it is read and means nothing. After `(K VARCHAR(STRING)` no second list may follow."""
    if reader.token.kind is not TokenKind.INTEGER and not reader.is_next("STRING"):
        reader.refuse("Syntax Error\nExpecting {'STRING', INTEGER_VALUE}")
    reader.take()
