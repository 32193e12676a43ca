"""Kafka's deserializers by the name of their Java class: bytes into the text that Java would print."""

import math
import struct
from collections.abc import Callable

Deserialize = Callable[[bytes], bytes]


class BadData(Exception):
    """The bytes are not what the deserializer reads."""


def _number(name: str, layout: str, size_bytes: int) -> Deserialize:
    def deserialize(data: bytes) -> bytes:
        if len(data) != size_bytes:
            raise BadData(f"Size of data received by {name}Deserializer is not {size_bytes}")
        (value,) = struct.unpack(layout, data)
        if isinstance(value, float):
            return java_float(value, single=size_bytes == 4).encode()
        return str(value).encode()

    return deserialize


def java_float(value: float, *, single: bool = False) -> str:
    """Java's Double.toString: plain between 0.001 and 10,000,000, else 1.5E10."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    digits = _shortest_single(value) if single else repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(float(digits), "f") if "e" in digits else digits
        return plain if "." in plain else plain + ".0"
    mantissa, _, exponent = (digits if "e" in digits else _scientific(digits)).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _shortest_single(value: float) -> str:
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return repr(float(text))
    return repr(value)


def _scientific(digits: str) -> str:
    significant = len(digits.replace("-", "").replace(".", "").strip("0")) or 1
    return f"{float(digits):.{significant - 1}e}"


def _bytes_text(data: bytes) -> bytes:
    """Kafka's Bytes.toString: printable ASCII as it is, the rest as \\xNN."""
    return "".join(
        chr(byte) if 32 <= byte <= 126 and byte != 92 else f"\\x{byte:02X}" for byte in data
    ).encode()


def _boolean(data: bytes) -> bytes:
    if len(data) != 1:
        raise BadData("Size of data received by BooleanDeserializer is not 1")
    if data[0] > 1:
        raise BadData(f"Unexpected byte received by BooleanDeserializer: {data[0]}")
    return b"true" if data[0] else b"false"


def _void(data: bytes) -> bytes:
    raise BadData("Data should be null for a VoidDeserializer.")


DESERIALIZERS: dict[str, Deserialize] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace").encode(),
    "ByteArrayDeserializer": lambda data: data,
    "BytesDeserializer": _bytes_text,
    "ByteBufferDeserializer": lambda data: (
        f"java.nio.HeapByteBuffer[pos=0 lim={len(data)} cap={len(data)}]".encode()
    ),
    "IntegerDeserializer": _number("Integer", ">i", 4),
    "LongDeserializer": _number("Long", ">q", 8),
    "ShortDeserializer": _number("Short", ">h", 2),
    "FloatDeserializer": _number("Float", ">f", 4),
    "DoubleDeserializer": _number("Double", ">d", 8),
    "UUIDDeserializer": lambda data: data,
    "BooleanDeserializer": _boolean,
    "VoidDeserializer": _void,
}


def deserializer(class_name: str) -> Deserialize | None:
    """By the last part of the class name; None for a class that is not Kafka's own."""
    return DESERIALIZERS.get(class_name.rpartition(".")[2])
