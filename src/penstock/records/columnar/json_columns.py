"""JSON texts → Arrow columns of given types, without a Python object for any of them.

The schema is walked in Python, once for each batch; the texts are walked by compiled code, once for each level of the
schema. What a field cannot be is null in that field, and the others stay, as Spark's `from_json` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.records.columnar import json_scalars as scalars
from penstock.records.columnar import json_texts as texts
from penstock.records.columnar import json_times as times
from penstock.records.columnar import json_walk as walk
from penstock.records.columnar.time_zones import CYCLE_MICROS, TimeZones

Array = np.ndarray[Any, np.dtype[Any]]

_WHOLE_TYPES: Final[dict[pa.DataType, type[np.signedinteger[Any]]]] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
}
# What Jackson, and so Spark, takes for a byte: 128 … 255 too, which become negative.
_LARGEST: Final = {pa.int8(): 255}
_SPECIAL_NAMES: Final = {
    b"NaN": np.nan, b"Infinity": np.inf, b"+Infinity": np.inf, b"-Infinity": -np.inf, b"+INF": np.inf, b"-INF": -np.inf
}  # fmt: skip
_SMALLEST_NORMAL_FLOAT: Final = np.finfo(np.float32).smallest_normal
# Decimal takes blanks and low lines besides.
_NUMERAL: Final = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BLANKS: Final = "".join(map(chr, range(33)))  # as Java trims
_DECIMALS: Final = Context(prec=100, rounding=ROUND_HALF_UP)


class UnsupportedType(ValueError):
    """No JSON is read into a column of this type; the message names it."""


class LocalTime(NamedTuple):
    """How timestamps without an offset are read."""

    zones: TimeZones
    zone: str = "UTC"
    """Of timestamps that name none."""


class Spans(NamedTuple):
    """Parts of `data`, as json_walk.py has them."""

    data: Array
    starts: Array
    stops: Array
    kinds: Array

    def text(self, row: int | np.integer[Any]) -> bytes:
        return bytes(self.data[self.starts[row] : self.stops[row]])

    def taken(self, rows: Array) -> Spans:
        return Spans(self.data, self.starts[rows], self.stops[rows], self.kinds[rows])


class Parsed(NamedTuple):
    column: pa.Array
    wrong: Array
    """Rows that are null because their JSON is something else than the type."""
    incomplete: Array
    """These, and those where that is so somewhere within."""


class Objects(NamedTuple):
    column: pa.StructArray
    malformed: Array
    incomplete: Array


def check_type(kind: pa.DataType) -> None:
    """UnsupportedType for what no column can be made of, however deep."""
    if pa.types.is_struct(kind):
        for field in kind:
            check_type(field.type)
    elif pa.types.is_list(kind):
        check_type(kind.value_type)
    elif pa.types.is_map(kind):
        if kind.key_type != pa.string():
            raise UnsupportedType(f"a map's keys are strings in JSON, not {kind.key_type}")
        check_type(kind.item_type)
    elif not _is_scalar(kind):
        raise UnsupportedType(f"JSON is not read into {kind}")


def _is_scalar(kind: pa.DataType) -> bool:
    return (
        kind in _WHOLE_TYPES
        or kind in (pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())
        or pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None)
    )


def parse_objects(values: pa.BinaryArray, kind: pa.StructType, local: LocalTime) -> Objects:
    """A struct for each text: null for null and blank ones, all fields null for what is no well-formed object.

    `local` is for timestamps without an offset. Bytes that are no UTF-8 are read as U+FFFD.
    """
    values = _repaired(values)
    rows = len(values)
    _, ends, data = values.buffers()
    places = np.frombuffer(ends, dtype=np.int32)[values.offset : values.offset + rows + 1]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    kinds = np.full(rows, walk.OBJECT, dtype=np.uint8)
    if values.null_count:
        kinds[values.is_null().to_numpy(zero_copy_only=False)] = walk.ABSENT
    spans = Spans(buffer, places[:-1], places[1:], kinds)
    walk.find_objects(buffer, spans.starts, spans.stops, kinds)
    fields = _fields(spans, kind, local)
    there = (kinds == walk.OBJECT) | (kinds == walk.MALFORMED)
    malformed = kinds == walk.MALFORMED
    incomplete = malformed.copy()
    for field in fields:
        incomplete |= field.incomplete
    return Objects(_struct(kind, fields, there), malformed, incomplete)


def _repaired(values: pa.BinaryArray) -> pa.BinaryArray:
    try:
        values.cast(pa.string())
        return values
    except pa.ArrowInvalid:
        wrong = [number for number, one in enumerate(values) if one.is_valid and not _is_utf8(one.as_py())]
        mask = np.zeros(len(values), dtype=bool)
        mask[wrong] = True
        repaired = [values[number].as_py().decode(errors="replace").encode() for number in wrong]
        return pc.replace_with_mask(values, pa.array(mask), pa.array(repaired, pa.binary()))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fields(spans: Spans, kind: pa.StructType, local: LocalTime) -> list[Parsed]:
    names = [field.name.encode() for field in kind]
    shape = (len(names), len(spans.kinds))
    starts, stops = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32)
    kinds = np.zeros(shape, dtype=np.uint8)
    name_ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    walk.walk_objects(
        spans.data, spans.starts, spans.stops, spans.kinds, np.frombuffer(b"".join(names), dtype=np.uint8),
        name_ends, starts, stops, kinds,
    )  # fmt: skip
    return [
        _parse(Spans(spans.data, starts[number], stops[number], kinds[number]), field.type, local)
        for number, field in enumerate(kind)
    ]


def _parse(spans: Spans, kind: pa.DataType, local: LocalTime) -> Parsed:
    if pa.types.is_struct(kind):
        return _parse_structs(spans, kind, local)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _parse_entries(spans, kind, local)
    if kind == pa.bool_():
        results = np.full(len(spans.kinds), scalars.BAD, dtype=np.uint8)
        results[spans.kinds <= walk.NULL] = scalars.NOTHING
        results[(spans.kinds == walk.TRUE) | (spans.kinds == walk.FALSE)] = scalars.GOOD
        return _column(kind, results, [np.packbits(spans.kinds == walk.TRUE, bitorder="little")])
    if kind == pa.string():
        return _parse_bytes(spans, kind)
    if kind in _WHOLE_TYPES:
        return _parse_whole(spans, kind)
    if kind in (pa.float32(), pa.float64()):
        return _parse_doubles(spans, kind)
    spans = _unescaped(spans)
    if kind == pa.binary():
        return _parse_bytes(spans, kind)
    if kind == pa.date32():
        return _parse_dates(spans)
    return _parse_decimals(spans, kind) if pa.types.is_decimal(kind) else _parse_times(spans, kind, local)


def _parse_structs(spans: Spans, kind: pa.StructType, local: LocalTime) -> Parsed:
    fields = _fields(spans, kind, local)
    there = spans.kinds == walk.OBJECT
    wrong = (spans.kinds > walk.NULL) & ~there
    incomplete = wrong.copy()
    for field in fields:
        incomplete |= field.incomplete
    return Parsed(_struct(kind, fields, there), wrong, incomplete)


def _struct(kind: pa.StructType, fields: list[Parsed], there: Array) -> pa.StructArray:
    columns = [field.column for field in fields]
    return pa.Array.from_buffers(kind, len(there), [_validity(there)], -1, children=columns)


def _parse_entries(spans: Spans, kind: pa.DataType, local: LocalTime) -> Parsed:
    """Lists and maps. One element that is wrong makes all of it null, as in Spark."""
    is_map = pa.types.is_map(kind)
    rows = len(spans.kinds)
    ends = np.zeros(rows + 1, dtype=np.int32)
    count = walk.count_entries(*spans, is_map, ends)
    starts, stops = np.empty((2, count), dtype=np.int32), np.empty((2, count), dtype=np.int32)
    kinds = np.zeros((2, count), dtype=np.uint8)
    walk.find_entries(*spans, is_map, starts, stops, kinds)
    value_type = kind.item_type if is_map else kind.value_type
    values = _parse(Spans(spans.data, starts[0], stops[0], kinds[0]), value_type, local)
    there = spans.kinds == (walk.OBJECT if is_map else walk.ARRAY)
    wrong = ((spans.kinds > walk.NULL) & ~there) | _any_of(values.wrong, ends)
    children = values.column
    if is_map:
        keys = _parse_bytes(Spans(spans.data, starts[1], stops[1], kinds[1]), pa.string())
        children = pa.StructArray.from_arrays(
            [keys.column, children], fields=[kind.key_field, kind.item_field]
        )
    column = pa.Array.from_buffers(
        kind, rows, [_validity(there & ~wrong), pa.py_buffer(ends)], -1, children=[children]
    )
    return Parsed(column, wrong, wrong | _any_of(values.incomplete, ends))


def _any_of(flags: Array, ends: Array) -> Array:
    """For each row whether a flag of its entries is set."""
    if not flags.any():
        return np.zeros(len(ends) - 1, dtype=bool)
    sums = np.concatenate([[0], np.cumsum(flags)])
    return sums[ends[1:]] > sums[ends[:-1]]


def _parse_whole(spans: Spans, kind: pa.DataType) -> Parsed:
    numbers, results = np.empty(len(spans.kinds), dtype=np.int64), np.empty_like(spans.kinds)
    width = _WHOLE_TYPES[kind]
    bounds = np.iinfo(width)
    scalars.to_longs(*spans, int(bounds.min), _LARGEST.get(kind, int(bounds.max)), numbers, results)
    return _column(kind, results, [numbers.astype(width, copy=False)])


def _parse_doubles(spans: Spans, kind: pa.DataType) -> Parsed:
    numbers, results = np.empty(len(spans.kinds), dtype=np.float64), np.empty_like(spans.kinds)
    scalars.to_doubles(*spans, numbers, results)
    open_rows = np.flatnonzero(results == scalars.UNDECIDED)
    if len(open_rows):
        are_numbers = (spans.kinds[open_rows] == walk.WHOLE) | (spans.kinds[open_rows] == walk.FRACTION)
        rows = open_rows[are_numbers]
        numerals = _parse_bytes(spans.taken(rows), pa.string()).column
        numbers[rows] = numerals.cast(pa.float64()).to_numpy()
        results[rows] = scalars.GOOD
        for row in open_rows[~are_numbers]:
            found = _SPECIAL_NAMES.get(spans.text(row))
            results[row] = scalars.BAD if found is None else scalars.GOOD
            numbers[row] = found or 0.0
    return _column(kind, results, [numbers if kind == pa.float64() else _floats(spans, numbers, results)])


def _floats(spans: Spans, numbers: Array, results: Array) -> Array:
    """The nearest floats. A double halfway between two may come from a number on either side: these are read again."""
    with np.errstate(over="ignore"):
        floats = numbers.astype(np.float32)
    is_halfway = (numbers.view(np.uint64) & np.uint64(0x1FFF_FFFF)) == np.uint64(0x1000_0000)
    is_small = (np.abs(numbers) < _SMALLEST_NORMAL_FLOAT) & (numbers != 0)
    rows = np.flatnonzero((is_halfway | is_small) & (results == scalars.GOOD))
    if len(rows):
        floats[rows] = _parse_bytes(spans.taken(rows), pa.string()).column.cast(pa.float32()).to_numpy()
    return floats


def _parse_decimals(spans: Spans, kind: pa.Decimal128Type) -> Parsed:
    numbers, results = np.empty((len(spans.kinds), 2), dtype=np.int64), np.empty_like(spans.kinds)
    scalars.to_decimals(*spans, kind.precision, kind.scale, numbers, results)
    for row in np.flatnonzero(results == scalars.UNDECIDED):
        unscaled = _unscaled(spans.text(row), kind)
        results[row] = scalars.BAD if unscaled is None else scalars.GOOD
        low = (unscaled or 0) & 0xFFFF_FFFF_FFFF_FFFF
        numbers[row] = (low - (1 << 64) if low >> 63 else low, (unscaled or 0) >> 64)
    return _column(kind, results, [numbers])


def _unscaled(text: bytes, kind: pa.Decimal128Type) -> int | None:
    """Numbers with more digits than fit in 64 bits."""
    if not _NUMERAL.fullmatch(text):
        return None
    try:
        scaled = Decimal(text.decode()).scaleb(kind.scale, _DECIMALS).to_integral_value(ROUND_HALF_UP)
        return int(scaled) if scaled.is_finite() and abs(scaled) < 10**kind.precision else None
    except DecimalException:
        return None


def _parse_dates(spans: Spans) -> Parsed:
    days, results = np.empty(len(spans.kinds), dtype=np.int32), np.empty_like(spans.kinds)
    times.to_dates(*spans, days, results)
    rows = np.flatnonzero(results == scalars.UNDECIDED)
    if len(rows):
        again, found = np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.uint8)
        times.to_dates(*_without_gmt(spans, rows), again, found)
        days[rows], results[rows] = again, np.where(found == scalars.UNDECIDED, scalars.BAD, found)
    return _column(pa.date32(), results, [days])


def _parse_times(spans: Spans, kind: pa.TimestampType, local: LocalTime) -> Parsed:
    micros, results = _times(spans, local)
    rows = np.flatnonzero(results == scalars.UNDECIDED)
    if len(rows):
        micros[rows], found = _times(_without_gmt(spans, rows), local)
        results[rows] = np.where(found == scalars.UNDECIDED, scalars.BAD, found)
    return _column(kind, results, [micros])


def _times(spans: Spans, local: LocalTime) -> tuple[Array, Array]:
    micros, results = np.empty(len(spans.kinds), dtype=np.int64), np.empty_like(spans.kinds)
    zone_starts = np.zeros(len(spans.kinds), dtype=np.int32)
    times.to_timestamps(*spans, micros, results, zone_starts)
    for name, rows in _zones(spans, results, zone_starts, local.zone):
        rules = local.zones.find(name)
        if rules is None:
            results[rows] = scalars.UNDECIDED if "GMT" in name else scalars.BAD
        else:
            times.to_instants(micros, rows, rules.ends, rules.offsets, rules.repeats_from, CYCLE_MICROS)
            results[rows] = scalars.GOOD
    return micros, results


def _zones(spans: Spans, results: Array, zone_starts: Array, default: str) -> Iterator[tuple[str, Array]]:
    """The rows of each zone that is known by a name."""
    rows = np.flatnonzero(results == scalars.LOCAL)
    if len(rows):
        yield default, rows
    named: dict[bytes, list[np.integer[Any]]] = {}
    for row in np.flatnonzero(results == scalars.ZONED):
        named.setdefault(spans.text(row)[zone_starts[row] - spans.starts[row] :], []).append(row)
    for name, of_name in named.items():
        yield name.decode(errors="replace").strip(_BLANKS), np.array(of_name)


def _without_gmt(spans: Spans, rows: Array) -> Spans:
    """Texts that Spark reads without the first GMT in them when they are nothing with it."""
    cleaned = pa.array([spans.text(row).replace(b"GMT", b"", 1) for row in rows], pa.binary())
    _, ends, data = cleaned.buffers()
    places = np.frombuffer(ends, dtype=np.int32)[: len(rows) + 1]
    return Spans(np.frombuffer(data, dtype=np.uint8), places[:-1], places[1:], spans.kinds[rows])


def _unescaped(spans: Spans) -> Spans:
    """Strings with escapes as what they mean, so that dates and numbers in them can be read."""
    escaped = spans.kinds == walk.ESCAPED
    if not escaped.any():
        return spans
    _, ends, data = _parse_bytes(spans, pa.string()).column.buffers()
    places = np.frombuffer(ends, dtype=np.int32)
    kinds = np.where(escaped, np.uint8(walk.TEXT), spans.kinds)
    return Spans(np.frombuffer(data, dtype=np.uint8), places[:-1], places[1:], kinds)


def _parse_bytes(spans: Spans, kind: pa.DataType) -> Parsed:
    rows = len(spans.kinds)
    wanted = spans.kinds > walk.NULL
    room = int(np.sum(spans.stops - spans.starts, where=wanted, dtype=np.int64))
    out, ends = np.empty(room, dtype=np.uint8), np.empty(rows + 1, dtype=np.int32)
    results = np.empty_like(spans.kinds)
    convert = texts.to_texts if kind == pa.string() else texts.from_base64
    used = convert(*spans, out, ends, results)
    return _column(kind, results, [ends, out[:used]])


def _column(kind: pa.DataType, results: Array, buffers: list[Array]) -> Parsed:
    wrong = results == scalars.BAD
    validity = _validity(results == scalars.GOOD)
    rows = len(results)
    column = pa.Array.from_buffers(kind, rows, [validity, *(pa.py_buffer(buffer) for buffer in buffers)])
    return Parsed(column, wrong, wrong)


def _validity(there: Array) -> pa.Buffer | None:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
