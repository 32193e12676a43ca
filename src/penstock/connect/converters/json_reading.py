"""JSON becomes values, by functions that are made once for a schema.

orjson reads first. What it does not take and Kafka's parser does (zeros in front, something behind the value, UTF-16), and
numbers that it would round, are read again by Python's own parser.

Kafka's converter is lenient, and so is this one: text where a number should be is 0, a number where text should be is null. Only
the logical types are checked.
"""

from __future__ import annotations

import binascii
import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    EPOCH,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_from_days,
    decimal_from_bytes,
    time_from_ms,
    timestamp_from_ms,
)
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError

Read = Callable[[Any], Any]

MISSING: Final = object()
"""Of bytes with nothing but spaces in them."""
MAX_NUMBER_CHARACTERS: Final = 1_000
_FAILED: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
_ZEROS_IN_FRONT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?)0*([0-9][0-9.eE+-]*+)', re.DOTALL)
_SPACES: Final = " \t\r\n"
_EXACT_FLOATS: Final = 1 << 53
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


class Rounded(Exception):
    """A number may have been rounded: read all again, with exact numbers."""


def loads(data: bytes | memoryview) -> Any:
    """As fast as it goes: numbers of more than 64 bits, and those with a point, may be rounded. DataError, MISSING."""
    try:
        return orjson.loads(data)
    except ValueError:
        return loads_slowly(data)


def loads_without_schema(data: bytes) -> Any:
    """Whole numbers are of 64 bits: what has more loses its high ones, as in Kafka."""
    if _LONG_NUMBER in data.translate(_DIGITS):
        return loads_slowly(data, whole=_wrapped)
    return loads(data)


def loads_exactly(data: bytes | memoryview) -> Any:
    return loads_slowly(data, fraction=_decimal_of)


def loads_slowly(
    data: bytes | memoryview,
    *,
    whole: Callable[[str], Any] | None = None,
    fraction: Callable[[str], Any] | None = None,
) -> Any:
    raw = bytes(data)
    try:
        text = raw.decode(json.detect_encoding(raw))
        text = text.lstrip(_SPACES)
        if not text:
            return MISSING
        decoder = json.JSONDecoder(
            parse_int=whole or _whole, parse_float=fraction or _fraction, parse_constant=_no_number
        )
        text = _ZEROS_IN_FRONT.sub(_without_zeros, text)
        value, end = decoder.raw_decode(text)
        if not isinstance(value, (str, list, dict)) and text[end : end + 1].strip(_SPACES):
            raise ValueError(f"Unexpected character ({text[end]!r})")
        return value
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise DataError(_FAILED + str(error)) from None


def _without_zeros(found: re.Match[str]) -> str:
    return found[0] if found[2] is None else found[1] + found[2]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


def _bounded(text: str) -> str:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise ValueError(
            f"Number value length ({len(text)}) exceeds the maximum allowed ({MAX_NUMBER_CHARACTERS})"
        )
    return text


def _whole(text: str) -> int:
    return int(_bounded(text))


def _fraction(text: str) -> float:
    return float(_bounded(text))


def _decimal_of(text: str) -> Decimal:
    return Decimal(_bounded(text))


def _wrapped(text: str) -> int:
    return _to_bits(int(_bounded(text)), 64)


def _to_bits(number: int, bits: int) -> int:
    """Java's narrowing: the lowest bits, the highest of them the sign."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def plain(value: Any) -> Any:
    """The payload of an envelope without a schema, from `loads`. Rounded."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return _to_bits(value, 64)
    if isinstance(value, float):
        if value.is_integer() and abs(value) >= _EXACT_FLOATS:
            raise Rounded
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()}


def reader_of(schema: Schema, *, replaces_null: bool) -> Read:
    """Of what is read from JSON, None among it. DataError, Rounded."""
    read = _Making(replaces_null).present(schema)
    return _with_null(schema, read, replaces_null)


def _with_null(schema: Schema, read: Read, replaces_null: bool) -> Read:
    default = schema.default if replaces_null else None
    if default is not None or schema.is_optional:
        return lambda value: default if value is None else read(value)

    def read_required(value: Any) -> Any:
        if value is None:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return read(value)

    return read_required


class _Making(NamedTuple):
    replaces_null: bool

    def of(self, schema: Schema) -> Read:
        return _with_null(schema, self.present(schema), self.replaces_null)

    def present(self, schema: Schema) -> Read:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name](schema)
        if schema.type in INTEGER_BITS:
            return _integer(INTEGER_BITS[schema.type])
        if schema.type is Type.STRUCT:
            return self._struct(schema)
        if schema.type is Type.ARRAY:
            return self._array(schema)
        if schema.type is Type.MAP:
            return self._map(schema)
        return _SCALARS[schema.type]

    def _array(self, schema: Schema) -> Read:
        assert schema.items is not None
        read_item = self.of(schema.items)

        def read(value: Any) -> Any:
            if isinstance(value, list):
                return [read_item(each) for each in value]
            return [read_item(each) for each in value.values()] if isinstance(value, dict) else []

        return read

    def _map(self, schema: Schema) -> Read:
        assert schema.items is not None
        assert schema.keys is not None
        read_key, read_item = self.of(schema.keys), self.of(schema.items)

        def read_object(value: Any) -> Any:
            if not isinstance(value, dict):
                raise DataError(
                    f"Maps with string fields should be encoded as JSON objects, but found {node_type(value)}"
                )
            return {key: read_item(each) for key, each in value.items()}

        def read_pairs(value: Any) -> Any:
            if not isinstance(value, list):
                raise DataError(
                    "Maps with non-string fields should be encoded as JSON array of tuples, but found "
                    + node_type(value)
                )
            made = {}
            for pair in value:
                if not isinstance(pair, list):
                    raise DataError(f"Found invalid map entry instead of array tuple: {node_type(pair)}")
                if len(pair) != 2:
                    raise DataError(f"Found invalid map entry, expected length 2 but found :{len(pair)}")
                made[_key(read_key(pair[0]))] = read_item(pair[1])
            return made

        return read_object if schema.keys.type is Type.STRING else read_pairs

    def _struct(self, schema: Schema) -> Read:
        steps = [
            (field.name, self.of(field.schema), not field.schema.is_optional and field.schema.default is None)
            for field in schema.fields
        ]
        types = [field.schema.type.name for field in schema.fields]
        trusted = Struct.trusted

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(value)}")
            get = value.get
            made: list[Any] = []
            for name, read_field, is_needed in steps:
                found = read_field(get(name))
                if found is None and is_needed:
                    raise DataError(
                        f'Invalid value: null used for required field: "{name}", schema type: {types[len(made)]}'
                    )
                made.append(found)
            return trusted(schema, made)

        return read


def _key(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise DataError(
            "a map's key is an array, a map or a struct, which Python's dicts do not take"
        ) from None
    return value


def node_type(value: Any) -> str:
    if value is None or value is MISSING:
        return "NULL" if value is None else "MISSING"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, str):
        return "STRING"
    if isinstance(value, list):
        return "ARRAY"
    return "OBJECT" if isinstance(value, dict) else "NUMBER"


def _integer(bits: int) -> Read:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> Any:
        if type(value) is int:
            return value if low <= value <= high else _to_bits(value, bits)
        if isinstance(value, float):
            if abs(value) >= _EXACT_FLOATS:
                raise Rounded
            return _narrowed(int(value), bits)
        return _narrowed(_whole_part(value), bits) if isinstance(value, Decimal) else 0

    return read


def _narrowed(value: int, bits: int) -> int:
    return _to_bits(value, bits)


def _whole_part(value: Decimal) -> int:
    """Its lowest 64 bits at least. Ten to the power of 64 has none of them."""
    exponent = value.as_tuple().exponent
    return 0 if isinstance(exponent, int) and exponent >= 64 else int(value)


def _double(value: Any) -> Any:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return 0.0


def _bytes(value: Any) -> Any:
    return _from_base64(value, "Invalid bytes field") if isinstance(value, str) else None


def _from_base64(text: str, message: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise DataError(f"{message}: {error}") from None


_SCALARS: Final[Mapping[Type, Read]] = {
    Type.FLOAT32: lambda value: to_single(_double(value)),
    Type.FLOAT64: _double,
    Type.BOOLEAN: lambda value: value is True,
    Type.STRING: lambda value: value if isinstance(value, str) else None,
    Type.BYTES: _bytes,
}


def _refused(name: str, wanted: str, value: Any) -> DataError:
    return DataError(
        f"Invalid type for {name}, underlying representation should be {wanted} but was {node_type(value)}"
    )


def _decimal(schema: Schema) -> Read:
    def read(value: Any) -> Any:
        if isinstance(value, str):
            data = _from_base64(value, "Invalid bytes for Decimal field")
            if not data:
                raise DataError("Invalid bytes for Decimal field: there are none")
            return decimal_from_bytes(schema, data)
        if isinstance(value, float):
            raise Rounded
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            return _unsigned_zero(Decimal(value))
        raise _refused("Decimal", "numeric or bytes", value)

    return read


def _unsigned_zero(value: Decimal) -> Decimal:
    return value if value else value.copy_abs()


def _date(schema: Schema) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
            raise _refused("Date", "integer", value)
        return date_from_days(schema, value)

    return read


def _time(schema: Schema) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
            raise _refused("Time", "integer", value)
        return time_from_ms(schema, value)

    return read


def _timestamp(schema: Schema) -> Read:
    def read(value: Any) -> Any:
        if type(value) is int:
            try:
                return EPOCH + _MILLISECOND * value
            except OverflowError:
                return timestamp_from_ms(schema, _to_bits(value, 64))
        if isinstance(value, float) and value.is_integer() and abs(value) >= _EXACT_FLOATS:
            raise Rounded
        raise _refused("Timestamp", "integral", value)

    return read


_LOGICAL: Final[Mapping[str | None, Callable[[Schema], Read]]] = {
    DECIMAL_NAME: _decimal, DATE_NAME: _date, TIME_NAME: _time, TIMESTAMP_NAME: _timestamp,
}  # fmt: skip
