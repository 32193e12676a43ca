"""Writing OpenTelemetry's metrics as clients do, field by field."""

import struct


def varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def message(field: int, *parts: bytes | str) -> bytes:
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fixed(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<q", value)


def attribute(field: int, key: str, value: bytes) -> bytes:
    """`value` is an AnyValue: message(1, "text"), number(3, 7) …"""
    return message(field, message(1, key), message(2, value))


def report(*metrics: bytes, resource: bytes = b"") -> bytes:
    """MetricsData with one resource and one scope."""
    return message(1, message(1, resource), message(2, message(1, message(1, "scope")), *metrics))


def gauge(name: str, *points: bytes) -> bytes:
    return message(2, message(1, name), message(3, "1"), message(5, *(message(1, point) for point in points)))


def total(name: str, *points: bytes, temporality: int = 2, is_monotonic: bool = True) -> bytes:
    parts = [message(1, point) for point in points]
    return message(2, message(1, name), message(7, *parts, number(2, temporality), number(3, is_monotonic)))
