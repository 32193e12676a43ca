"""Converters of one type each, in the bytes of Kafka's serializers: strings, bytes, booleans and numbers."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from penstock.connect.converters.either import TYPE_SETTING, EitherConverter, kind_of
from penstock.connect.data.floats import to_single
from penstock.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    INTEGER_BITS,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    Schema,
    Type,
)
from penstock.connect.data.text import java_text
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.settings import HIGH, Kind, Setting, Settings

ENCODING: Final = "converter.encoding"
_CONVERTERS: Final = "org.apache.kafka.connect.converters."
# Java writes UTF-16 with a mark, the highest byte first.
_JAVA_UTF_16: Final = ("utf-16-be", codecs.BOM_UTF16_BE)


class StringConverter(EitherConverter):
    """Any value is written as the text that Java prints of it."""

    java_names = ("org.apache.kafka.connect.storage.StringConverter",)
    settings = Settings(
        TYPE_SETTING,
        Setting(
            ENCODING, Kind.STRING, "The charset of the text, such as UTF-8 or ISO-8859-1.", default="UTF-8",
            importance=HIGH,
        ),
    )  # fmt: skip

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        try:
            self._charset = codecs.lookup(self.values[ENCODING]).name
        except LookupError:
            raise InvalidConfig(
                f"Invalid value {self.values[ENCODING]} for configuration {ENCODING}: it is no charset"
            ) from None

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else java_text(schema, value)
        if self._charset == "utf-16":
            charset, mark = _JAVA_UTF_16
            return mark + text.encode(charset, "replace")
        return text.encode(self._charset, "replace")

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return OPTIONAL_STRING, None
        if self._charset == "utf-16" and data[:2] not in (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE):
            return OPTIONAL_STRING, data.decode(_JAVA_UTF_16[0], "replace")
        return OPTIONAL_STRING, data.decode(self._charset, "replace")


class ByteArrayConverter(EitherConverter):
    java_names = (_CONVERTERS + "ByteArrayConverter",)

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, (bytearray, memoryview)):
            return bytes(value)
        raise DataError(f"ByteArrayConverter is not compatible with objects of type {kind_of(value)}")

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return OPTIONAL_BYTES, data


_OPTIONAL_BOOLEAN: Final = BOOLEAN.optional()


class BooleanConverter(EitherConverter):
    java_names = (_CONVERTERS + "BooleanConverter",)

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(f"BooleanConverter is not compatible with objects of type {kind_of(value)}")
        return b"\x01" if value else b"\x00"

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return _OPTIONAL_BOOLEAN, None
        if len(data) != 1:
            reason = "Size of data received by BooleanDeserializer is not 1"
        elif data[0] > 1:
            reason = f"Unexpected byte received by BooleanDeserializer: {(data[0] + 128) % 256 - 128}"
        else:
            return _OPTIONAL_BOOLEAN, data == b"\x01"
        raise DataError(f"Failed to deserialize boolean: {reason}")


class _NumberConverter(EitherConverter):
    java_type: ClassVar[str]
    schema: ClassVar[Schema]
    layout: ClassVar[struct.Struct]
    deserializer: ClassVar[str]

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        type_ = self.schema.type
        is_float = type_ in (Type.FLOAT32, Type.FLOAT64)
        kind: type = float if is_float else int
        has_other_schema = schema is not None and schema.type is not type_
        if isinstance(value, int) and not isinstance(value, bool) and schema is not None and is_float:
            value = float(value)
        if has_other_schema or not isinstance(value, kind) or isinstance(value, bool):
            raise DataError(f"Failed to serialize to {self.java_type} (was {kind_of(value)}): ")
        number: Any = value
        if type_ is Type.FLOAT32:
            number = to_single(number)
        bits = INTEGER_BITS.get(type_)
        if bits is not None and not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise DataError(f"Failed to serialize to {self.java_type}: {value} has more than {bits} bits")
        return self.layout.pack(number)

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return self.schema, None
        if len(data) != self.layout.size:
            raise DataError(
                f"Failed to deserialize {self.java_type}: Size of data received by {self.deserializer} is not "
                f"{self.layout.size}"
            )
        return self.schema, self.layout.unpack(data)[0]


class ShortConverter(_NumberConverter):
    java_names = (_CONVERTERS + "ShortConverter",)
    java_type, schema, layout = "short", INT16.optional(), struct.Struct(">h")
    deserializer = "ShortDeserializer"


class IntegerConverter(_NumberConverter):
    java_names = (_CONVERTERS + "IntegerConverter",)
    java_type, schema, layout = "integer", INT32.optional(), struct.Struct(">i")
    deserializer = "IntegerDeserializer"


class LongConverter(_NumberConverter):
    java_names = (_CONVERTERS + "LongConverter",)
    java_type, schema, layout = "long", INT64.optional(), struct.Struct(">q")
    deserializer = "LongDeserializer"


class FloatConverter(_NumberConverter):
    java_names = (_CONVERTERS + "FloatConverter",)
    java_type, schema, layout = "float", FLOAT32.optional(), struct.Struct(">f")
    deserializer = "Deserializer"


class DoubleConverter(_NumberConverter):
    java_names = (_CONVERTERS + "DoubleConverter",)
    java_type, schema, layout = "double", FLOAT64.optional(), struct.Struct(">d")
    deserializer = "Deserializer"
