"""The table functions: one row becomes as many as the list has that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from penstock.streams.functions.overloads import choose
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.registry import shown_name
from penstock.streams.functions.scope import added, added_names
from penstock.streams.functions.signatures import Argument, Signature, applied, generics_of, parse
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.types import SqlType

TypeOf = Callable[[e.Expression], SqlType | None]
MAX_CUBE_COLUMNS: Final = 20
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class TableOverload:
    signature: Signature
    run: Callable[..., list[Any]]
    type: SqlType | None = None  # where the signature does not say it all


@dataclass(slots=True)
class TableFunction:
    name: str
    about: str
    overloads: list[TableOverload] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ResolvedTableFunction:
    """`type` is an element's type: of a row that comes out. `run` gives the list for one row."""

    name: str
    run: Callable[..., list[Any]]
    type: SqlType


def _explode(items: list[Item] | None) -> list[Item]:
    return [] if items is None else items


def _cube(items: list[Item] | None) -> list[list[Item | None]]:
    """All combinations of each item and NULL, without those that are there already because an item is NULL."""
    if items is None:
        return []
    if len(items) > MAX_CUBE_COLUMNS:
        raise FunctionFailed(f"cube_explode: too many columns ({len(items)}); max is {MAX_CUBE_COLUMNS}")
    rows: list[list[Item | None]] = [[]]
    for item in items:
        choices: tuple[Item | None, ...] = (None,) if item is None else (None, item)
        rows = [[*row, choice] for row in rows for choice in choices]
    return rows


TABLES: Final = {
    "EXPLODE": TableFunction(
        "EXPLODE",
        "Explodes an array. This function outputs one value for each element of the array.",
        [
            TableOverload(parse("ARRAY<DECIMAL> input -> DECIMAL"), _explode),
            TableOverload(parse("ARRAY<T> list -> T"), _explode),
        ],
    ),
    "CUBE_EXPLODE": TableFunction(
        "CUBE_EXPLODE",
        "Takes as argument a list of columns and outputs all possible combinations of them. "
        "It produces 2^d new rows where d is the number of columns given as parameter. "
        "Duplicate entries for columns with null value are skipped.",
        [TableOverload(parse("ARRAY<T> columns -> ARRAY<T>"), _cube)],
    ),
}


def find(name: str) -> TableFunction | None:
    return TABLES.get(name.upper()) or added(name.upper(), TableFunction)


def is_table_function(name: str) -> bool:
    return find(name) is not None


def names() -> list[str]:
    return sorted([*TABLES, *added_names(TableFunction)])


def resolve(call: e.Call, type_of: TypeOf) -> ResolvedTableFunction:
    found = find(call.name)
    if found is None:
        raise TypeRefused(f"No table function with name {call.name} exists!", call.place)
    types: tuple[Argument, ...] = tuple(type_of(each) for each in call.arguments) or (t.INTEGER,)
    overload = choose(shown_name(found.name), found.overloads, lambda each: each.signature, types)
    if overload.type is not None:
        return ResolvedTableFunction(found.name, overload.run, overload.type)
    first = types[0]
    if (
        overload.signature.result.name == "DECIMAL"
        and isinstance(first, SqlType)
        and first.element is not None
    ):
        return ResolvedTableFunction(found.name, overload.run, first.element)
    result = applied(overload.signature.result, generics_of(overload.signature, types))
    return ResolvedTableFunction(found.name, overload.run, result)
