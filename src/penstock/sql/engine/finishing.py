"""DISTINCT and ORDER BY: what is done to the rows of a pull query before they are given. What is kept for it is bounded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from penstock.sql.analysis.pull_shapes import Finish, Order
from penstock.sql.engine.key_order import key_order
from penstock.streams.plan.schema import Column

Columns = tuple[Any, ...]


def finished(
    rows: Iterable[Columns],
    finish: Finish,
    columns: tuple[Column, ...],
    *,
    bound: int,
    too_large: Callable[[], Exception],
) -> Generator[Columns, None, None]:
    if finish.is_distinct:
        rows = _distinct(rows, bound, too_large)
    if finish.orders:
        kept = []
        for row in rows:
            kept.append(row)
            if len(kept) > bound:
                raise too_large()
        for order in reversed(finish.orders):  # a sort keeps the order of what is equal
            kept.sort(key=_key(order, columns), reverse=order.is_descending)
        rows = kept
    for row in rows:
        yield row[: len(row) - finish.hidden] if finish.hidden else row


def _key(order: Order, columns: tuple[Column, ...]) -> Callable[[Columns], tuple[bool, bytes]]:
    place = order.column
    of = key_order([columns[place]])
    null_is_small = order.nulls_first is not order.is_descending

    def key(row: Columns) -> tuple[bool, bytes]:
        value = row[place]
        return (value is None) is not null_is_small, b"" if value is None else of((value,))

    return key


def _distinct(
    rows: Iterable[Columns], bound: int, too_large: Callable[[], Exception]
) -> Generator[Columns, None, None]:
    seen = set()
    for row in rows:
        known: Any = row
        try:
            hash(known)
        except TypeError:  # arrays, maps and structs
            known = hashable(row)
        if known in seen:
            continue
        seen.add(known)
        if len(seen) > bound:
            raise too_large()
        yield row


def hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(hashable(each) for each in value)
    if isinstance(value, dict):
        return tuple((key, hashable(each)) for key, each in value.items())
    return value
