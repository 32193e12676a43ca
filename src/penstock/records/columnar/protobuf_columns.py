"""Protobuf's messages → Arrow columns, without a Python object for any of them.

The descriptor is walked in Python, once for each batch; the messages are walked by compiled code, once for each level.
Fields that know whether they were set are null when they were not; others are then what Protobuf says they are: 0, false, "".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.records.columnar import protobuf_walk as walk
from penstock.records.columnar.protobuf_shapes import SIZED, UNSIGNED, Member, MessageShape
from penstock.records.columnar.tree_columns import Array

MAX_CELLS: Final = 32 << 20
"""Entries times fields of one level. A batch with more is done in parts, and a value with more is too large."""


class _TooLarge(Exception):
    """More cells than one pass may have."""


_LARGEST_SECONDS: Final = (1 << 63) // 1_000_000 - 1


class Spans(NamedTuple):
    data: Array
    starts: Array
    stops: Array
    there: Array
    rows: Array
    """Which row of the batch each is in."""


class Reading:
    """Of one batch. `bad` has the rows with something broken in them."""

    def __init__(self, rows: int) -> None:
        self.bad: Final = np.zeros(rows, dtype=np.uint8)
        self._cells = 0

    def struct(self, spans: Spans, shape: MessageShape) -> pa.StructArray:
        columns = self.columns(spans, shape)
        validity = None if spans.there.all() else pa.py_buffer(np.packbits(spans.there, bitorder="little"))
        return pa.Array.from_buffers(shape.type, len(spans.there), [validity], -1, children=columns)

    def columns(self, spans: Spans, shape: MessageShape) -> list[pa.Array]:
        order, rows = shape.by_number, len(spans.starts)
        members = [shape.members[place] for place in order]
        self._cells += rows * (len(members) + 1)
        if self._cells > MAX_CELLS:
            raise _TooLarge
        size = (len(members), rows)
        starts, stops = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
        counts = np.zeros(size, dtype=np.int32)
        bad = np.zeros(rows, dtype=np.uint8)
        walk.walk_messages(
            spans.data, spans.starts, spans.stops, spans.there,
            np.array([each.number for each in members], dtype=np.int64),
            np.array([each.wire for each in members], dtype=np.int64),
            np.array([each.is_repeated for each in members], dtype=np.uint8),
            np.array([each.oneof for each in members], dtype=np.int64),
            np.empty(shape.oneofs, dtype=np.int64), starts, stops, counts, bad,
        )  # fmt: skip
        self._mark(spans, bad)
        counts[:, bad != 0] = 0
        found: list[pa.Array] = [None] * len(members)
        for number, (place, each) in enumerate(zip(order, members, strict=True)):
            if each.is_repeated:
                found[place] = self._repeated(spans, each, counts[number])
            else:
                found[place] = self._single(spans, each, starts[number], stops[number], counts[number])
        return found

    def _mark(self, spans: Spans, bad: Array) -> None:
        if bad.any():
            self.bad[spans.rows[bad != 0]] = 1

    def _single(self, spans: Spans, member: Member, starts: Array, stops: Array, counts: Array) -> pa.Array:
        there = (counts > 0).astype(np.uint8)
        data = spans.data
        if member.message is not None and (counts > 1).any():
            data, starts, stops = self._merged(spans, member, starts, stops, counts)
        if not member.has_presence and member.message is not None:
            there = (
                spans.there
            )  # the value of a map's entry, which is an empty message where it is not written
        own = Spans(data, starts, stops, there, spans.rows)
        return self._values(own, member, is_nullable=member.has_presence, parents=spans.there)

    def _merged(
        self, spans: Spans, member: Member, starts: Array, stops: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        """A message that is written in parts: one behind the other they are the whole."""
        several = np.flatnonzero(counts > 1)
        numbers = counts[several]
        total = int(numbers.sum())
        first, last = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
        walk.find_entries(
            spans.data, spans.starts[several], spans.stops[several], numbers, member.number, member.wire, first, last
        )  # fmt: skip
        sizes = (last - first).astype(np.int64)
        own, ends = np.empty(int(sizes.sum()), dtype=np.uint8), np.empty(total + 1, dtype=np.int32)
        walk.copy_spans(spans.data, first, last, np.ones(total, dtype=np.uint8), 0, own, ends, spans.there)
        starts, stops = starts.copy(), stops.copy()
        places = np.concatenate([[0], np.cumsum(numbers)])
        starts[several] = len(spans.data) + ends[places[:-1]]
        stops[several] = len(spans.data) + ends[places[1:]]
        return np.concatenate([spans.data, own]), starts, stops

    def _repeated(self, spans: Spans, member: Member, counts: Array) -> pa.Array:
        counts = np.where(self.bad[spans.rows] != 0, 0, counts).astype(np.int32)
        ends = np.zeros(len(counts) + 1, dtype=np.int32)
        np.cumsum(counts, out=ends[1:])
        total = int(ends[-1])
        self._cells += total
        if self._cells > MAX_CELLS:
            raise _TooLarge
        starts, stops = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
        if total:
            walk.find_entries(
                spans.data, spans.starts, spans.stops, counts, member.number, member.wire, starts, stops
            )
        entries = Spans(
            spans.data, starts, stops, np.ones(total, dtype=np.uint8), np.repeat(spans.rows, counts)
        )
        validity = None if spans.there.all() else pa.py_buffer(np.packbits(spans.there, bitorder="little"))
        if member.is_map:
            assert member.message is not None
            kind = member.column_type
            fields = self.columns(entries, member.message)
            items = pa.StructArray.from_arrays(fields, fields=[kind.key_field, kind.item_field])
            kept = _last_of_each_key(fields[0], counts)
            if kept is not None:
                items = items.take(pa.array(kept))
                np.cumsum(_counts_of(kept, counts), out=ends[1:])
        else:
            kind = member.column_type
            items = self._values(entries, member, is_nullable=False, parents=entries.there)
        return pa.Array.from_buffers(kind, len(counts), [validity, pa.py_buffer(ends)], -1, children=[items])

    def _values(self, spans: Spans, member: Member, *, is_nullable: bool, parents: Array) -> pa.Array:
        """One for each span. What is not there is null, or 0 where there is no telling; in a parent that is null, null."""
        if member.message is not None and member.unit == "":
            return self.struct(spans, member.message)
        if member.unit == "time":
            return self._time(spans, member)
        if member.unit == "wrapper":
            assert member.message is not None
            inner = member.message.members[0]
            (column,) = self.columns(spans, MessageShape([_with_presence(inner, False)]))
            return _masked(column, spans.there)
        valid = spans.there if is_nullable else parents
        if member.wire == SIZED:
            return self._bytes(spans, member, valid)
        numbers = np.empty(len(spans.starts), dtype=np.int64)
        walk.to_numbers(*spans[:4], member.wire, member.meaning, numbers)
        if member.names is not None:
            return _masked(_enum(numbers, member.names), valid)
        return _masked(_numbers(numbers, member.type), valid)

    def _bytes(self, spans: Spans, member: Member, valid: Array) -> pa.Array:
        room = int(np.sum(spans.stops - spans.starts, where=spans.there != 0, dtype=np.int64))
        out, ends = np.empty(max(room, 1), dtype=np.uint8), np.empty(len(spans.starts) + 1, dtype=np.int32)
        bad = np.zeros(len(spans.starts), dtype=np.uint8)
        is_text = member.type == pa.string()
        used = walk.copy_spans(*spans[:4], int(is_text), out, ends, bad)
        if bad.any():
            self._mark(spans, bad)
            # Of a batch with a broken text; it is done again without. Not null, which a map's key must never be.
            return pa.array([b""] * len(bad), pa.binary()).cast(member.type)
        validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(
            member.type, len(bad), [validity, pa.py_buffer(ends), pa.py_buffer(out[:used])]
        )

    def _time(self, spans: Spans, member: Member) -> pa.Array:
        assert member.message is not None
        seconds, nanos = (
            column.fill_null(0).to_numpy(zero_copy_only=False)
            for column in self.columns(spans, member.message)
        )
        self._mark(spans, (np.abs(seconds) > _LARGEST_SECONDS).astype(np.uint8))
        micros = seconds * 1_000_000 + nanos // 1000
        return _masked(pa.array(micros, pa.int64()).cast(member.type), spans.there)


def _last_of_each_key(keys: pa.Array, counts: Array) -> Array | None:
    """Which entries of maps count: of those with one key in one map the last. None: all do."""
    if not len(keys) or counts.max() < 2:
        return None
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    pairs = _owners_of(counts) * (codes.max() + 1) + codes
    _, from_the_end = np.unique(pairs[::-1], return_index=True)
    if len(from_the_end) == len(pairs):
        return None
    return np.sort(len(pairs) - 1 - from_the_end)


def _counts_of(kept: Array, counts: Array) -> Array:
    return np.bincount(_owners_of(counts)[kept], minlength=len(counts))


def _owners_of(counts: Array) -> Array:
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def _with_presence(member: Member, has_presence: bool) -> Member:
    return Member(
        member.name, member.number, member.wire, member.meaning, member.type, member.is_repeated, has_presence
    )  # fmt: skip


def _numbers(numbers: Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        return pa.array(numbers.view(np.float64), kind)
    if kind == pa.float32():
        return pa.array(numbers.astype(np.int32).view(np.float32), kind)
    if kind == pa.bool_():
        return pa.array(numbers != 0, kind)
    if kind == UNSIGNED:
        wide = np.zeros((len(numbers), 2), dtype=np.int64)
        wide[:, 0] = numbers  # the low word, without a sign
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(wide)])
    return pa.array(numbers.astype(np.int32) if kind == pa.int32() else numbers, kind)


def _enum(numbers: Array, names: dict[int, str]) -> pa.Array:
    """By their names; a number without one as it is."""
    known, places = np.unique(numbers, return_inverse=True)
    texts = pa.array([names.get(int(number), str(number)) for number in known], pa.string())
    return texts.take(pa.array(places))


def _masked(column: pa.Array, valid: Array) -> pa.Array:
    if valid.all():
        return column
    buffers = column.buffers()
    there = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(column), [there, *buffers[1:]], offset=column.offset)


class FoundMessages(NamedTuple):
    column: pa.StructArray
    bad: Array
    """Rows that are null because they are broken: 1, or 2 where they are too large."""


def read_messages(
    data: Array, starts: Array, stops: Array, there: Array, shape: MessageShape
) -> FoundMessages:
    """A struct for each message, null for what is not there and for what is broken."""
    bad = np.zeros(len(starts), dtype=np.uint8)
    parts = list(_parts(data, starts, stops, there, shape, bad, 0))
    column = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return FoundMessages(column, bad)


def _parts(
    data: Array, starts: Array, stops: Array, there: Array, shape: MessageShape, bad: Array, first: int
) -> Iterator[pa.StructArray]:
    rows = len(starts)
    wanted = np.where(bad[first : first + rows] != 0, 0, there).astype(np.uint8)
    while True:
        reading = Reading(rows)
        try:
            column = reading.struct(Spans(data, starts, stops, wanted, np.arange(rows)), shape)
        except _TooLarge:
            if rows == 1:
                bad[first] = 2
                wanted = np.zeros(1, dtype=np.uint8)
                continue
            half = rows // 2
            yield from _parts(data, starts[:half], stops[:half], there[:half], shape, bad, first)
            yield from _parts(data, starts[half:], stops[half:], there[half:], shape, bad, first + half)
            return
        if not reading.bad.any():
            yield column
            return
        # Once more without them: then there is nothing that is broken.
        bad[first : first + rows] |= reading.bad
        wanted = np.where(bad[first : first + rows] != 0, 0, wanted).astype(np.uint8)
