"""Explode: table functions give a list each, and the row becomes as many rows as the longest of them has elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.streams.functions import tables
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.building import Building, Emit, with_value
from penstock.streams.kernel.compiling import column_types
from penstock.streams.kernel.records import Row
from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import Call, Expression
from penstock.streams.plan.schema import Schema


class Exploded(NamedTuple):
    """One of the lists: which column it fills, and what gives it from the values from `first` to `last`."""

    column: int
    first: int
    last: int
    run: Callable[..., Sequence[Any] | None]


def explode(node: nodes.Explode, building: Building, emit: Emit) -> Emit:
    expressions, lists = _computed(node)
    values_of = building.items(node, expressions, node.input.schema)
    plain = [at for at in range(len(node.items)) if at not in node.exploded]

    def process(row: Row) -> None:
        if row.value is None:
            return
        values = values_of(row)
        found = [(each.column, _elements(each, values, row)) for each in lists]
        one: list[Any] = [None] * len(node.items)
        for at, value in zip(plain, values, strict=False):
            one[at] = value
        for number in range(max((len(elements) for _, elements in found), default=0)):
            for at, elements in found:
                one[at] = elements[number] if number < len(elements) else None
            emit(with_value(row, tuple(one)))

    def _elements(each: Exploded, values: tuple[Any, ...], row: Row) -> Sequence[Any]:
        try:
            return each.run(*values[each.first : each.last]) or ()
        except Exception as error:  # a function may fail on any value
            building.trouble(node, "expression", error, row)
            return ()

    return process


def _computed(node: nodes.Explode) -> tuple[tuple[Expression, ...], list[Exploded]]:
    """What is computed from a row: the plain items, then the arguments of each table function."""
    expressions = [item for at, item in enumerate(node.items) if at not in node.exploded]
    lists = []
    for at in node.exploded:
        arguments, run = _table_function(node.items[at], node.input.schema)
        lists.append(Exploded(at, len(expressions), len(expressions) + len(arguments), run))
        expressions += arguments
    return tuple(expressions), lists


def _table_function(
    item: Expression, schema: Schema
) -> tuple[tuple[Expression, ...], Callable[..., Sequence[Any] | None]]:
    """An item that is no table function gives its list itself."""
    if isinstance(item, Call) and tables.is_table_function(item.name):
        types = column_types(schema)
        found = tables.resolve(item, lambda each: type_of(each, types))
        return item.arguments, found.run
    return (item,), lambda elements: elements
