"""Reading what clients push: OpenTelemetry's MetricsData in Protobuf's encoding, as much of it as a metrics page needs.

    MetricsData        1 resource_metrics *
    ResourceMetrics    1 resource   2 scope_metrics *
    Resource           1 attributes *
    ScopeMetrics       2 metrics *
    Metric             1 name   5 gauge   7 sum   9 histogram   11 summary
    Gauge, Histogram…  1 data_points *
    Sum                1 data_points *   2 temporality (1: delta)   3 is_monotonic
    NumberDataPoint    4 as_double (8 bytes)   6 as_int (8 bytes)   7 attributes *
    HistogramDataPoint 4 count (8 bytes)   5 sum (double)   9 attributes *     a summary's attributes are 7
    KeyValue           1 key   2 value: 1 string   2 bool   3 int   4 double

Of histograms and summaries only the count and the sum
are read. What is unknown is skipped; what is damaged is a Malformed.
"""

import struct
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from penstock.wire.errors import Malformed

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DELTA: Final = 1
GAUGE_FIELD, SUM_FIELD, HISTOGRAM_FIELD, SUMMARY_FIELD = 5, 7, 9, 11
MAX_ATTRIBUTES: Final = 32
"""Of a resource, or of a point: the rest is left out."""
MAX_TEXT_LENGTH: Final = 256
"""Of a name, a key or a value: the rest is cut off."""
FIELDS_AT_ONCE: Final = 512
MAX_FIELDS: Final = 500_000
_DOUBLE: Final = struct.Struct("<d")
_INT: Final = struct.Struct("<q")

Attributes = tuple[tuple[str, str], ...]
Field = tuple[int, int, "int | memoryview"]
"""Number, wire type, and the value: a view of its bytes, or a varint."""


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    """Never goes down but when the client starts again."""


class Point(NamedTuple):
    name: str
    kind: Kind
    attributes: Attributes
    """Sorted by key: the resource's and its own."""
    value: float
    is_delta: bool = False
    """To be added to what was there before."""


class MetricsReader:
    """Reads one report. `pause` is called after each FIELDS_AT_ONCE fields, whether or not there was a point among them."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._count = 0

    def points(self, data: bytes) -> Iterator[Point]:
        for number, kind, value in self._fields(memoryview(data)):
            if number == 1 and kind == BYTES:
                yield from self._resource_points(_view(value))

    def _resource_points(self, data: memoryview) -> Iterator[Point]:
        resource: dict[str, str] = {}
        for number, kind, value in self._fields(data):
            if number == 1 and kind == BYTES:
                resource = self._attributes(_view(value), 1)
        for number, kind, value in self._fields(data):
            if number == 2 and kind == BYTES:
                for inner, inner_kind, metric in self._fields(_view(value)):
                    if inner == 2 and inner_kind == BYTES:
                        yield from self._metric_points(_view(metric), resource)

    def _metric_points(self, data: memoryview, resource: dict[str, str]) -> Iterator[Point]:
        name = ""
        for number, kind, value in self._fields(data):
            if number == 1 and kind == BYTES:
                name = _text(_view(value))
            elif number in (GAUGE_FIELD, SUM_FIELD) and kind == BYTES:
                yield from self._numbers(name, number, _view(value), resource)
            elif number in (HISTOGRAM_FIELD, SUMMARY_FIELD) and kind == BYTES:
                yield from self._totals(name, number, _view(value), resource)

    def _numbers(self, name: str, field: int, data: memoryview, resource: dict[str, str]) -> Iterator[Point]:
        is_delta = is_monotonic = False
        if field == SUM_FIELD:
            for number, kind, value in self._fields(data):
                if number == 2 and kind == VARINT:
                    is_delta = value == DELTA
                elif number == 3 and kind == VARINT:
                    is_monotonic = bool(value)
        metric_kind = Kind.COUNTER if is_monotonic else Kind.GAUGE
        for number, kind, value in self._fields(data):
            if number == 1 and kind == BYTES:
                found = self._number(_view(value))
                if found is not None:
                    attributes = _merged(resource, self._attributes(_view(value), 7))
                    yield Point(name, metric_kind, attributes, found, is_delta)

    def _number(self, data: memoryview) -> float | None:
        found: float | None = None
        for number, kind, value in self._fields(data):
            if kind == FIXED64 and number == 4:
                (found,) = _DOUBLE.unpack(_view(value))
            elif kind == FIXED64 and number == 6:
                found = float(_INT.unpack(_view(value))[0])
        return found

    def _totals(self, name: str, field: int, data: memoryview, resource: dict[str, str]) -> Iterator[Point]:
        """Of each histogram or summary what Prometheus calls its count and its sum."""
        is_delta = any(number == 2 and value == DELTA for number, _, value in self._fields(data))
        for number, kind, value in self._fields(data):
            if number != 1 or kind != BYTES:
                continue
            attributes = _merged(
                resource, self._attributes(_view(value), 9 if field == HISTOGRAM_FIELD else 7)
            )
            for inner, inner_kind, raw in self._fields(_view(value)):
                if inner_kind == FIXED64 and inner == 4:
                    total = float(_INT.unpack(_view(raw))[0])
                    yield Point(f"{name}.count", Kind.COUNTER, attributes, total, is_delta)
                elif inner_kind == FIXED64 and inner == 5:
                    yield Point(
                        f"{name}.sum", Kind.GAUGE, attributes, _DOUBLE.unpack(_view(raw))[0], is_delta
                    )

    def _attributes(self, data: memoryview, field: int) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, kind, value in self._fields(data):
            if number == field and kind == BYTES and len(found) < MAX_ATTRIBUTES:
                key, text = self._key_value(_view(value))
                if key:
                    found[key] = text
        return found

    def _key_value(self, data: memoryview) -> tuple[str, str]:
        key = text = ""
        for number, kind, value in self._fields(data):
            if number == 1 and kind == BYTES:
                key = _text(_view(value))
            elif number == 2 and kind == BYTES:
                for inner, inner_kind, raw in self._fields(_view(value)):
                    if inner == 1 and inner_kind == BYTES:
                        text = _text(_view(raw))
                    elif inner == 2 and inner_kind == VARINT:
                        text = "true" if raw else "false"
                    elif inner == 3 and inner_kind == VARINT and isinstance(raw, int):
                        text = str(raw - (1 << 64) if raw >= 1 << 63 else raw)
                    elif inner == 4 and inner_kind == FIXED64:
                        text = str(_DOUBLE.unpack(_view(raw))[0])
        return key, text

    def _fields(self, data: memoryview) -> Iterator[Field]:
        position, end = 0, len(data)
        while position < end:
            self._count += 1
            if self._count % FIELDS_AT_ONCE == 0:
                if self._count > MAX_FIELDS:
                    raise Malformed(f"more than {MAX_FIELDS} fields")
                self._pause()
            tag, position = _varint(data, position)
            kind = tag & 7
            if kind == VARINT:
                value, position = _varint(data, position)
                yield tag >> 3, kind, value
                continue
            if kind == BYTES:
                size, position = _varint(data, position)
            elif kind == FIXED64:
                size = 8
            elif kind == FIXED32:
                size = 4
            else:
                raise Malformed(f"a field of wire type {kind}")
            if size > end - position:
                raise Malformed("a field passes the end of its message")
            yield tag >> 3, kind, data[position : position + size]
            position += size


def _merged(resource: dict[str, str], own: dict[str, str]) -> Attributes:
    return tuple(sorted({**resource, **own}.items()))


def _text(data: memoryview) -> str:
    return bytes(data[: 4 * MAX_TEXT_LENGTH]).decode("utf-8", "replace")[:MAX_TEXT_LENGTH]


def _view(value: "int | memoryview") -> memoryview:
    assert isinstance(value, memoryview)  # of each wire type but VARINT
    return value


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[position : position + 10]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise Malformed("a varint without an end")
