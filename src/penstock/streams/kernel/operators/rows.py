"""Steps that look at one row only: Filter, Project, SelectKey, RegroupTable, ToStream, ToTable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from penstock.streams.kernel.building import Building, Emit, kept, with_value
from penstock.streams.kernel.records import Row
from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import ColumnRef, Expression, Literal
from penstock.streams.plan.nodes import TABLE
from penstock.streams.plan.schema import Schema

Items = Callable[[Row], tuple[Any, ...]]


def filter_rows(node: nodes.Filter, building: Building, emit: Emit) -> Emit:
    holds = building.predicate(node, node.predicate, node.input.schema)

    def stream(row: Row) -> None:
        if row.value is not None and holds(row):
            emit(row)

    def table(row: Row) -> None:
        new = row.value if row.value is not None and holds(row) else None
        old = row.old
        if old is not None and not holds(with_value(row, old)):
            old = None
        if new is not None or old is not None or not knows_old:
            emit(with_value(row, new, old))

    if node.kind is not TABLE:
        return stream
    knows_old = building.needs.knows_old(node.input)
    return table


def project(node: nodes.Project, building: Building, emit: Emit) -> Emit:
    items = building.items(node, node.items, node.input.schema)

    def plain(row: Row) -> None:
        key, value, timestamp, _, window, headers, partition, offset = row
        emit(
            Row(
                key,
                None if value is None else items(row),
                timestamp,
                None,
                window,
                headers,
                partition,
                offset,
            )
        )

    def changes(row: Row) -> None:
        new = None if row.value is None else items(row)
        emit(with_value(row, new, None if row.old is None else items(with_value(row, row.old))))

    return changes if building.needs.wants_old(node) else plain


def select_key(node: nodes.SelectKey, building: Building, emit: Emit) -> Emit:
    new_key = key_maker(node, node.keys, building, node.input.schema)
    items = building.items(node, node.items, node.input.schema)

    def process(row: Row) -> None:
        value = None if row.value is None else items(row)
        emit(
            Row(new_key(row), value, row.timestamp, None, row.window, row.headers, row.partition, row.offset)
        )

    if node.kind is TABLE:
        emit = with_key(kept(building.store(node.name), emit, give_old=building.needs.wants_old(node)))
    return process


def key_maker(
    node: nodes.Node, keys: tuple[Expression, ...], building: Building, schema: Schema
) -> Callable[[Row], tuple[Any, ...] | None]:
    """A key of one column that is NULL is no key. Without a value only key columns can be asked."""
    if not keys:
        return lambda row: None
    of_row = building.items(node, keys, schema)
    nothing = Literal(None, None)
    of_key = building.items(node, tuple(each if only_key(each, schema) else nothing for each in keys), schema)
    single = len(keys) == 1

    def make(row: Row) -> tuple[Any, ...] | None:
        key = of_row(row) if row.value is not None else of_key(row)
        return None if single and key[0] is None else key

    return make


def only_key(expression: Expression, schema: Schema) -> bool:
    return all(schema.is_key(name) for name in column_names(expression))


def column_names(part: Any) -> set[str]:
    """Of an expression, wherever they stand in it."""
    if isinstance(part, ColumnRef):
        return {part.name}
    if isinstance(part, tuple):
        return set().union(*map(column_names, part))
    if isinstance(part, Expression):
        return set().union(
            *(column_names(getattr(part, each.name)) for each in fields(part) if each.name != "place")
        )
    return set()


def regroup(node: nodes.RegroupTable, building: Building, emit: Emit) -> Emit:
    """A change that stays in its group goes on as one; else the old row is taken out of its group first."""
    schema = node.input.schema
    keys = building.items(node, node.keys, schema)
    items = building.items(node, node.items, schema)

    def grouped(row: Row) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        key = keys(row)
        return None if None in key else (key, items(row))

    def process(row: Row) -> None:
        new = None if row.value is None else grouped(row)
        old = None if row.old is None else grouped(with_value(row, row.old))
        if new is not None and old is not None and new[0] == old[0]:
            emit(_moved(row, new[0], new[1], old[1]))
            return
        if old is not None:
            emit(_moved(row, old[0], None, old[1]))
        if new is not None:
            emit(_moved(row, new[0], new[1], None))

    return process


def _moved(row: Row, key: tuple[Any, ...], new: tuple[Any, ...] | None, old: tuple[Any, ...] | None) -> Row:
    return Row(key, new, row.timestamp, old, None, row.headers, row.partition, row.offset)


def to_stream(node: nodes.ToStream, building: Building, emit: Emit) -> Emit:
    def process(row: Row) -> None:
        emit(with_value(row, row.value))

    return process


def to_table(node: nodes.ToTable, building: Building, emit: Emit) -> Emit:
    return with_key(kept(building.store(node.name), emit, give_old=building.needs.wants_old(node)))


def with_key(emit: Emit) -> Emit:
    def process(row: Row) -> None:
        if row.key is not None:
            emit(row)

    return process
