"""The bytes of windowed keys, as Kafka Streams writes them.

key | start, eight bytes                     tumbling and hopping windows; their size is not written
key | end, eight bytes | start, eight bytes  sessions
"""

from __future__ import annotations

import struct
from typing import Final

from penstock.streams.formats.failures import BadRecord
from penstock.streams.plan.sources import Window, WindowKind

_START: Final = struct.Struct(">q")
_SESSION: Final = struct.Struct(">qq")


def with_window(key: bytes, bounds: tuple[int, int], window: Window) -> bytes:
    if window.kind == WindowKind.SESSION:
        return key + _SESSION.pack(bounds[1], bounds[0])
    return key + _START.pack(bounds[0])


def without_window(data: bytes, window: Window) -> tuple[bytes, tuple[int, int]]:
    """BadRecord."""
    form = _SESSION if window.kind == WindowKind.SESSION else _START
    cut = len(data) - form.size
    if cut < 0:
        raise BadRecord(
            f"the key of a {window.kind} window has {len(data)} bytes, and needs {form.size} at least"
        )
    if window.kind == WindowKind.SESSION:
        end, start = _SESSION.unpack_from(data, cut)
        return data[:cut], (start, end)
    (start,) = _START.unpack_from(data, cut)
    return data[:cut], (start, start + window.size_ms)
