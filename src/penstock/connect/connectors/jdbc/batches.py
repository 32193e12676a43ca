"""Records in the order of their topic become a few statements that write the same.

Of records with one key the last one counts, so that a key stands once in a statement. A delete runs before the rows of the
same batch: what came before it is gone, what came behind it is there.

    put(1, a), put(2, b), delete(1), put(1, c), put(2, d)   →   delete (1); upsert (1, c), (2, d)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.connect.connectors.jdbc.rows import Row, Shape
from penstock.connect.connectors.jdbc.sink_settings import INSERT
from penstock.connect.records import SinkRecord


class Item(NamedTuple):
    shape: Shape
    row: Row
    record: SinkRecord


class Stage(NamedTuple):
    """Rows that one statement writes."""

    action: str
    """insert, upsert, update, delete"""
    shape: Shape
    items: list[Item]


DELETE = "delete"


def staged(items: list[Item], insert_mode: str) -> Iterator[Stage]:
    """Deletes have shapes of their own (`Shape.is_delete`)."""
    return _inserted(items) if insert_mode == INSERT else _keyed(items, insert_mode)


def _inserted(items: list[Item]) -> Iterator[Stage]:
    """Rows of all forms may come in any order, but not across a delete."""
    open_stages: dict[Shape, Stage] = {}
    for item in items:
        shape = item.shape
        stage = open_stages.get(shape)
        if stage is None:
            if shape.is_delete != any(each.is_delete for each in open_stages):
                yield from open_stages.values()
                open_stages = {}
            stage = open_stages[shape] = Stage(DELETE if shape.is_delete else INSERT, shape, [])
        stage.items.append(item)
    yield from open_stages.values()


class _Keyed:
    """What is to be done with the rows of one table; each key has one row at most."""

    def __init__(self) -> None:
        self.deletes: dict[Row, Item] = {}
        self.rows: dict[Shape, dict[Row, Item]] = {}
        self.shape_of: dict[Row, Shape] = {}

    def stages(self, mode: str) -> Iterator[Stage]:
        if self.deletes:
            items = list(self.deletes.values())
            yield Stage(DELETE, items[0].shape, items)
        for shape, rows in self.rows.items():
            if rows:
                yield Stage(mode, shape, list(rows.values()))


def _keyed(items: list[Item], mode: str) -> Iterator[Stage]:
    tables: dict[str, _Keyed] = {}
    for item in items:
        shape, row, _ = item
        table = tables.get(shape.table)
        if table is None:
            table = tables[shape.table] = _Keyed()
        key = row[: len(shape.keys)]
        before = table.shape_of.get(key)
        if shape.is_delete:
            if before is not None:
                del table.rows[before][key]
                del table.shape_of[key]
            table.deletes[key] = item
        elif before is shape:
            rows = table.rows[shape]
            del rows[key]  # the order of the last ones
            rows[key] = item
        else:
            if before is not None:
                # The same row with other columns: both count.
                yield from table.stages(mode)
                table = tables[shape.table] = _Keyed()
            table.rows.setdefault(shape, {})[key] = item
            table.shape_of[key] = shape
    for table in tables.values():
        yield from table.stages(mode)
