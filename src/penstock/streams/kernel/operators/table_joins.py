"""StreamTableJoin and TableTableJoin: the other side is looked up as it is when a row comes."""

from __future__ import annotations

from typing import Any

from penstock.streams.kernel.building import Building, Emit, View
from penstock.streams.kernel.records import Row
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import JoinKind

Values = tuple[Any, ...]


def stream_table_join(node: nodes.StreamTableJoin, building: Building, emit: Emit) -> Emit:
    """The handler of the stream's rows; the table's rows only go into its view."""
    view, left_join = building.view(node.right), node.join is JoinKind.LEFT
    nobody = (None,) * len(node.right.schema.value)
    left_key = building.items(node, node.left_key, node.left.schema) if node.left_key else None

    def process(row: Row) -> None:
        if row.value is None:
            return
        key = row.key if left_key is None else left_key(row)
        found = None
        if key is not None and None not in key:
            found = view(key, row.window if left_key is None else None)
        elif not left_join:
            return
        if found is None:
            if left_join:
                emit(_joined(row, (*row.value, *nobody), row.timestamp))
            return
        assert found.value is not None
        emit(_joined(row, (*row.value, *found.value), row.timestamp))

    return process


def _joined(row: Row, value: Values | None, timestamp: int, old: Values | None = None) -> Row:
    return Row(row.key, value, timestamp, old, row.window, row.headers, row.partition, row.offset)


def table_table_join(node: nodes.TableTableJoin, building: Building, emit: Emit) -> tuple[Emit, Emit]:
    return _changes(node, building, emit, 0), _changes(node, building, emit, 1)


def _changes(node: nodes.TableTableJoin, building: Building, emit: Emit, side: int) -> Emit:
    """What a change of one side does. A side is kept when its rows stand in the result without a partner."""
    other = building.view(node.left if side else node.right)
    nobody = (None,) * len((node.right, node.left)[side].schema.value)
    nothing = (None,) * len((node.left, node.right)[side].schema.value)
    is_kept = node.join is JoinKind.FULL or node.join is (JoinKind.RIGHT if side else JoinKind.LEFT)
    other_is_kept = node.join is JoinKind.FULL or node.join is (JoinKind.LEFT if side else JoinKind.RIGHT)
    wants_old = building.needs.wants_old(node)

    def both(mine: Values | None, theirs: Values | None) -> Values | None:
        if mine is None and (theirs is None or not other_is_kept):
            return None
        one, two = nothing if mine is None else mine, nobody if theirs is None else theirs
        return (*two, *one) if side else (*one, *two)

    def process(row: Row) -> None:
        if row.key is None:
            return
        found = other(row.key, row.window)
        if found is None:
            if not is_kept or (row.value is None and row.old is None):
                return
            theirs, timestamp = None, row.timestamp
        else:
            theirs, timestamp = found.value, max(row.timestamp, found.timestamp)
        emit(_joined(row, both(row.value, theirs), timestamp, both(row.old, theirs) if wants_old else None))

    return process


def joined_view(node: nodes.TableTableJoin, left: View, right: View) -> View:
    left_nobody, right_nobody = (None,) * len(node.left.schema.value), (None,) * len(node.right.schema.value)

    def view(key: Values, window: tuple[int, int] | None) -> Row | None:
        one, two = left(key, window), right(key, window)
        if one is None and (two is None or node.join in (JoinKind.INNER, JoinKind.LEFT)):
            return None
        if two is None and node.join in (JoinKind.INNER, JoinKind.RIGHT):
            return None
        value = (
            *(left_nobody if one is None or one.value is None else one.value),
            *(right_nobody if two is None or two.value is None else two.value),
        )
        return Row(key, value, max(each.timestamp for each in (one, two) if each is not None), None, window)

    return view
