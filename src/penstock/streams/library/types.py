"""Types of columns as Python says them: str, int, list[str], dict[str, int], {"city": str}, or a SqlType."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

from penstock.streams.library.failures import TopologyError
from penstock.streams.plan import types as t
from penstock.streams.plan.types import SqlType

PLAIN: Final[dict[Any, SqlType]] = {
    bool: t.BOOLEAN,
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    datetime: t.TIMESTAMP,
    date: t.DATE,
    time: t.TIME,
}


def sql_type(declared: Any) -> SqlType:
    """TopologyError for what is no type of a column."""
    if isinstance(declared, SqlType):
        return declared
    try:
        if declared in PLAIN:
            return PLAIN[declared]
    except TypeError:
        pass  # a dict
    if isinstance(declared, dict):
        if not declared:
            raise TopologyError("a struct needs a field")
        return t.struct(*((_name(name), sql_type(each)) for name, each in declared.items()))
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is list and len(arguments) == 1:
        return t.array(sql_type(arguments[0]))
    if origin is dict and len(arguments) == 2:
        return t.map_of(sql_type(arguments[0]), sql_type(arguments[1]))
    if isinstance(declared, list) and len(declared) == 1:
        return t.array(sql_type(declared[0]))
    if declared is Decimal:
        raise TopologyError("Decimal needs its digits: decimal(10, 2) has 10, of which 2 are decimals")
    shown = declared.__name__ if isinstance(declared, type) else repr(declared)
    raise TopologyError(
        f"{shown} is no type of a column: bool, int, float, str, bytes, datetime, date, time, decimal(p, s), list[…], "
        "dict[…, …], a dict of fields, or a SqlType"
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TopologyError(f"a name of a column is a text, not {name!r}")
    return name
