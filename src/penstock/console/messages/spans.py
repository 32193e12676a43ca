"""Where the parts are that a path names ◇, in a whole column of JSON at once: compiled code walks, and copies nothing.

`Column.parts` gives the spans (see `records.columnar.json_walk`) and which row each belongs to. A value that is no
well-formed object has no parts; whoever asks about arrays and plain values at the root asks `json_path.holds`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.console.messages.json_path import Step
from penstock.records.columnar import json_walk as walk
from penstock.records.columnar.json_columns import Spans

Array = np.ndarray[Any, np.dtype[Any]]


class Parts(NamedTuple):
    spans: Spans
    rows: Array
    """Of each span, the row that it is in."""


def texts(values: pa.Array) -> Parts:
    """The whole values; null ones are ABSENT, and what does not begin as an object does is MALFORMED or EMPTY."""
    _, ends, data = values.buffers()
    count = len(values)
    places = np.frombuffer(ends, dtype=np.int32)[values.offset : values.offset + count + 1]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    kinds = np.full(count, walk.OBJECT, dtype=np.uint8)
    if values.null_count:
        kinds[values.is_null().to_numpy(zero_copy_only=False)] = walk.ABSENT
    spans = Spans(buffer, places[:-1], places[1:], kinds)
    walk.find_objects(buffer, spans.starts, spans.stops, kinds)
    return Parts(spans, np.arange(count))


class Column:
    """A column of JSON. What is at a path is looked for once, however often it is asked for."""

    def __init__(self, values: pa.Array) -> None:
        self.whole: Final = texts(values)
        self._known: dict[tuple[Step, ...], Parts] = {}

    @property
    def rows(self) -> int:
        return len(self.whole.spans.kinds)

    def parts(self, path: tuple[Step, ...]) -> Parts:
        """What is at the path, without what is not there."""
        if not path:
            return _there(
                Parts(self.whole.spans._replace(kinds=self.whole.spans.kinds.copy()), self.whole.rows)
            )
        found = self._known.get(path)
        if found is None:
            above, step = self.parts(path[:-1]), path[-1]
            found = _there(_field(above, step) if isinstance(step, str) else _entries(above, step))
            self._known[path] = found
        return found


def _there(found: Parts) -> Parts:
    is_there = found.spans.kinds != walk.ABSENT
    if is_there.all():
        return found
    return Parts(found.spans.taken(np.flatnonzero(is_there)), found.rows[is_there])


def _field(found: Parts, name: str) -> Parts:
    spans = found.spans
    encoded = name.encode("utf-8", "surrogatepass")
    shape = (1, len(spans.kinds))
    starts, stops = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
    kinds = np.zeros(shape, dtype=np.uint8)
    walk.walk_objects(
        spans.data, spans.starts, spans.stops, spans.kinds, np.frombuffer(encoded, dtype=np.uint8),
        np.array([0, len(encoded)], dtype=np.int32), starts, stops, kinds,
    )  # fmt: skip
    return Parts(Spans(spans.data, starts[0], stops[0], kinds[0]), found.rows)


def _entries(found: Parts, place: int | None) -> Parts:
    spans = found.spans
    ends = np.zeros(len(spans.kinds) + 1, dtype=np.int32)
    count = walk.count_entries(spans.data, spans.starts, spans.stops, spans.kinds, False, ends)
    starts, stops = np.zeros((1, count), dtype=np.int32), np.zeros((1, count), dtype=np.int32)
    kinds = np.zeros((1, count), dtype=np.uint8)
    walk.find_entries(spans.data, spans.starts, spans.stops, spans.kinds, False, starts, stops, kinds)
    entries = Spans(spans.data, starts[0], stops[0], kinds[0])
    counts = np.diff(ends)
    if place is None:
        return Parts(entries, np.repeat(found.rows, counts))
    has_it = counts > place
    return Parts(entries.taken(ends[:-1][has_it] + place), found.rows[has_it])
