"""Which rows of an Arrow batch are wanted ◇, without an object for any of them.

    matcher = Matcher(wanted, value_of)      # value_of: for values that are not plain JSON, such as those with a schema's id
    mask = matcher.mask(batch)               # None: all of them

`batch` has the columns key, value and headers of `records.columnar`. Bytes that are no UTF-8 match nothing but bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.console.messages import json_path, spans
from penstock.console.messages.json_path import Comparison, Every, Expression, Not, Some
from penstock.console.messages.patterns import Pattern, compiled, quoted
from penstock.console.messages.wanted import Part, Wanted
from penstock.records.columnar import json_scalars as scalars
from penstock.records.columnar import json_texts
from penstock.records.columnar import json_walk as walk
from penstock.records.columnar.columns import HEADERS, KEY, VALUE
from penstock.records.columnar.json_columns import Spans

Array = np.ndarray[Any, np.dtype[Any]]
Documents = Callable[[bytes], Any]
"""The document that a value is; ValueError where it is none."""
_NUMBERS: Final = (walk.WHOLE, walk.FRACTION)
_LARGEST_EXACT: Final = 1 << 53
LOOK_EVERY_ROWS: Final = 256


class Matcher:
    """`value_of` reads what does not begin as an object of JSON does, one by one; `is_stopped` ends that."""

    def __init__(
        self, wanted: Wanted, value_of: Documents, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._wanted = wanted
        self._value_of = value_of
        self._is_stopped = is_stopped

    def mask(self, batch: pa.RecordBatch) -> Array | None:
        wanted = self._wanted
        if wanted.is_everything:
            return None
        mask = np.ones(batch.num_rows, dtype=bool)
        if wanted.only_nulls:
            mask &= _bits(pc.is_null(batch.column(VALUE)))
        if wanted.key:
            mask &= self._keys(batch.column(KEY))
        if wanted.header:
            mask &= self._headers(batch.column(HEADERS))
        pattern, expression = wanted.pattern, wanted.expression
        # What is cheap has thinned out the rows; what costs more looks only at the rest, where that is small.
        if pattern is not None:
            mask &= _thinned(batch, mask, lambda rest: self._texts(rest, pattern))
        if expression is not None:
            mask &= _thinned(batch, mask, lambda rest: self._paths(rest.column(VALUE), expression))
        return mask

    def _texts(self, batch: pa.RecordBatch, pattern: Pattern) -> Array:
        part = self._wanted.part
        mask = np.zeros(batch.num_rows, dtype=bool)
        if part in (Part.VALUE, Part.ANYWHERE):
            mask |= contains(batch.column(VALUE), pattern)
        if part in (Part.KEY, Part.ANYWHERE):
            mask |= contains(batch.column(KEY), pattern)
        if part in (Part.HEADERS, Part.ANYWHERE):
            headers = batch.column(HEADERS)
            pairs = headers.values
            mask |= _any_entry(headers, contains(pairs.field(0), pattern) | contains(pairs.field(1), pattern))
        return mask

    def _keys(self, keys: pa.Array) -> Array:
        pattern = self._wanted.key_pattern
        if pattern is not None:
            return contains(keys, pattern)
        return _bits(pc.is_in(keys, value_set=pa.array(self._wanted.keys, pa.binary())))

    def _headers(self, headers: pa.Array) -> Array:
        pairs = headers.values
        found = _bits(pc.equal(pairs.field(0), self._wanted.header_name))
        value = self._wanted.header_value
        if value is not None:
            found &= _bits(pc.equal(pairs.field(1), pa.scalar(value, pa.binary())))
        return _any_entry(headers, found)

    def _paths(self, values: pa.Array, expression: Expression) -> Array:
        column = spans.Column(values)
        kinds = column.whole.spans.kinds
        mask = _holds(expression, column)
        is_object = kinds == walk.OBJECT
        mask &= is_object
        if not _needs_fields(expression):
            mask &= _is_well_formed(column.whole)
        others = np.flatnonzero(kinds == walk.MALFORMED)  # an array, a number, or something else
        for number, row in enumerate(others):
            if number % LOOK_EVERY_ROWS == 0 and self._is_stopped():
                break
            try:
                document = self._value_of(values[int(row)].as_py())
            except ValueError:
                continue
            mask[row] = json_path.holds(expression, document)
        return mask


def contains(column: pa.Array, pattern: Pattern) -> Array:
    """Of keys, values or the names of headers."""
    text = pa.Array.from_buffers(pa.string(), len(column), column.buffers(), offset=column.offset)
    return _bits(pc.match_substring_regex(text, pattern.text))


def _needs_fields(expression: Expression) -> bool:
    """Whether it holds only of objects that have some field: the walk has none in what is not well-formed."""
    if isinstance(expression, Not):
        return False
    if isinstance(expression, Every | Some):
        return all(_needs_fields(part) for part in expression.parts)
    return bool(expression.path) and isinstance(expression.path[0], str)


def _is_well_formed(whole: spans.Parts) -> Array:
    kinds = whole.spans.kinds.copy()
    none, places = np.empty((0, len(kinds)), dtype=np.uint8), np.empty((0, len(kinds)), dtype=np.int32)
    walk.walk_objects(
        whole.spans.data, whole.spans.starts, whole.spans.stops, kinds, np.empty(0, dtype=np.uint8),
        np.zeros(1, dtype=np.int32), places, places.copy(), none,
    )  # fmt: skip
    return np.asarray(kinds == walk.OBJECT)


def _holds(expression: Expression, column: spans.Column) -> Array:
    if isinstance(expression, Not):
        return ~_holds(expression.inner, column)
    if isinstance(expression, Every):
        return np.asarray(np.logical_and.reduce([_holds(part, column) for part in expression.parts]))
    if isinstance(expression, Some):
        return np.asarray(np.logical_or.reduce([_holds(part, column) for part in expression.parts]))
    found = column.parts(expression.path)
    mask = np.zeros(column.rows, dtype=bool)
    mask[found.rows[_compared(expression, found.spans)]] = True
    return mask


def _compared(comparison: Comparison, found: Spans) -> Array:
    operator, literal = comparison.operator, comparison.literal
    if operator == json_path.EXISTS:
        return np.ones(len(found.kinds), dtype=bool)
    if operator == json_path.UNEQUAL:
        return ~_compared(Comparison(comparison.path, json_path.EQUAL, literal), found)
    if literal is None or isinstance(literal, bool):
        kind = walk.NULL if literal is None else walk.TRUE if literal else walk.FALSE
        is_it = found.kinds == kind
        return is_it if operator == json_path.EQUAL else np.zeros_like(is_it)
    if isinstance(literal, str):
        return _compared_texts(comparison, literal, found)
    return _compared_numbers(operator, literal, found)


def _compared_texts(comparison: Comparison, literal: str, found: Spans) -> Array:
    rows = np.flatnonzero((found.kinds == walk.TEXT) | (found.kinds == walk.ESCAPED))
    mask = np.zeros(len(found.kinds), dtype=bool)
    if not len(rows):
        return mask
    column = _unescaped(found.taken(rows))
    if comparison.operator == json_path.MATCHES:
        mask[rows] = contains(column, comparison.pattern())
    elif comparison.operator == json_path.CONTAINS:
        mask[rows] = contains(column, compiled(quoted(literal)))
    else:
        scalar = pa.scalar(literal.encode("utf-8", "replace"), pa.binary())
        mask[rows] = _bits(pc.call_function(_FUNCTIONS[comparison.operator], [column, scalar]))
    return mask


def _unescaped(found: Spans) -> pa.Array:
    count = len(found.kinds)
    room = int((found.stops.astype(np.int64) - found.starts).sum())
    out, ends = np.empty(max(room, 1), dtype=np.uint8), np.zeros(count + 1, dtype=np.int32)
    results = np.zeros(count, dtype=np.uint8)
    json_texts.to_texts(found.data, found.starts, found.stops, found.kinds, out, ends, results)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(out)], null_count=0
    )


def _compared_numbers(operator: str, literal: float, found: Spans) -> Array:
    rows = np.flatnonzero(np.isin(found.kinds, _NUMBERS))
    mask = np.zeros(len(found.kinds), dtype=bool)
    if not len(rows):
        return mask
    taken = found.taken(rows)
    numbers, results = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.uint8)
    scalars.to_doubles(taken.data, taken.starts, taken.stops, taken.kinds, numbers, results)
    compare = _COMPARED[operator]
    mask[rows] = compare(numbers, float(literal)) if abs(literal) <= _LARGEST_EXACT else False
    # Python compares exactly what doubles would round.
    unsure = (
        results == scalars.UNDECIDED if abs(literal) <= _LARGEST_EXACT else np.ones(len(rows), dtype=bool)
    )
    for row in np.flatnonzero(unsure):
        text = taken.text(row)
        number = int(text) if taken.kinds[row] == walk.WHOLE and len(text) < 4000 else float(text)
        mask[rows[row]] = compare(number, literal)
    return mask


_COMPARED: Final[dict[str, Any]] = {
    json_path.EQUAL: lambda left, right: left == right,
    json_path.LESS: lambda left, right: left < right,
    json_path.AT_MOST: lambda left, right: left <= right,
    json_path.GREATER: lambda left, right: left > right,
    json_path.AT_LEAST: lambda left, right: left >= right,
}
_FUNCTIONS: Final = {
    json_path.EQUAL: "equal", json_path.LESS: "less", json_path.AT_MOST: "less_equal", json_path.GREATER: "greater",
    json_path.AT_LEAST: "greater_equal",
}  # fmt: skip


def _thinned(batch: pa.RecordBatch, mask: Array, look: Callable[[pa.RecordBatch], Array]) -> Array:
    """`look` at the rows that are left where these are few; the others do not matter."""
    left = int(mask.sum())
    if left * 8 > len(mask):
        return look(batch)
    found = np.zeros(len(mask), dtype=bool)
    if left:
        rows = np.flatnonzero(mask)
        found[rows] = look(batch.take(pa.array(rows)))
    return found


def _bits(found: pa.Array) -> Array:
    """A null is no match."""
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)


def _any_entry(lists: pa.Array, found: Array) -> Array:
    """For each row whether one of its entries is found; `found` is about all entries that there are."""
    ends = lists.offsets.to_numpy()
    counts = np.concatenate(([0], np.cumsum(found)))
    return np.asarray(counts[ends[1:]] > counts[ends[:-1]])
