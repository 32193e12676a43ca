"""Values of a Protobuf schema: between JSON and the bytes in a record.

    the indexes of the message (`indexes`) | the message, in Protobuf's binary form

JSON is Protobuf's own mapping: 64-bit numbers and bytes are strings, google.protobuf.Timestamp is a text, and so on. Both names
of a field are read, `user_id` and `userId`. Fields that were not set are shown with their defaults, where presence is not told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from penstock.schemas.model import InvalidValue, Schema
from penstock.schemas.protobuf import indexes
from penstock.schemas.protobuf.bytes_checked import check_bytes, has_bytes
from penstock.schemas.protobuf.schema import ProtobufSchema

MAX_VALUE_DEPTH: Final = 100
"""Of messages in one another; the library's own bound for bytes is the same."""
_PROTOBUF: Final = "google.protobuf."
"""Some messages of this package have a JSON of their own, such as a Timestamp."""
_MAX_KNOWN: Final = 1_000


class _Known(NamedTuple):
    indexes: tuple[int, ...]
    new: Callable[[], Message]


class ProtobufCodec:
    def __init__(self, schema: ProtobufSchema, full_name: str | None, original_names: bool) -> None:
        self._schema = schema
        self._original_names = original_names
        self._by_indexes: dict[tuple[int, ...], _Known] = {}
        own = (0,) if full_name is None else schema.indexes.of(full_name)
        if own is None:
            raise InvalidValue(f"the schema has no message {full_name}")
        self._own = self._known(own)
        self._has_bytes = has_bytes(self._own.new().DESCRIPTOR)

    def encode(self, value: Any) -> bytes:
        message = self._own.new()
        if not isinstance(value, dict) and not message.DESCRIPTOR.full_name.startswith(_PROTOBUF):
            raise InvalidValue(f"{message.DESCRIPTOR.full_name} must be an object")
        if self._has_bytes:
            check_bytes(value, message.DESCRIPTOR)
        try:
            json_format.ParseDict(
                value, message, descriptor_pool=self._schema.pool, max_recursion_depth=MAX_VALUE_DEPTH
            )
            return b"".join((indexes.written(self._own.indexes), message.SerializeToString()))
        except (json_format.ParseError, EncodeError, TypeError, ValueError, AttributeError) as e:
            raise InvalidValue(_line(e)) from None
        except RecursionError:
            raise InvalidValue("it is nested too deeply") from None

    def decode(self, data: bytes | memoryview) -> Any:
        found = indexes.read(data)
        message = self._known(found.indexes).new()
        try:
            message.ParseFromString(bytes(data[found.end :]))
        except DecodeError as e:
            raise InvalidValue(_line(e)) from None
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise InvalidValue(f"required fields are missing: {missing[:300]}")
        try:
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=self._original_names,
                descriptor_pool=self._schema.pool,
            )
        except (json_format.Error, TypeError, ValueError) as e:
            raise InvalidValue(_line(e)) from None
        except RecursionError:
            raise InvalidValue("it is nested too deeply") from None

    def _known(self, path: tuple[int, ...]) -> _Known:
        known = self._by_indexes.get(path)
        if known is None:
            descriptor = message_descriptor(self._schema, path)
            known = _Known(path, message_factory.GetMessageClass(descriptor))
            if len(self._by_indexes) < _MAX_KNOWN:
                self._by_indexes[path] = known
        return known


def codec_of(schema: Schema, message: str | None = None, *, original_names: bool = True) -> ProtobufCodec:
    """`message` is the full name of the one to write, by default the first; which one is read is said by the data. InvalidValue:
    the schema has no such message. Without `original_names` JSON that is read has names like `userId`."""
    assert isinstance(schema, ProtobufSchema)
    return ProtobufCodec(schema, message, original_names)


def message_descriptor(schema: Schema, path: tuple[int, ...] = (0,)) -> Descriptor:
    """By the indexes before a value. InvalidValue."""
    assert isinstance(schema, ProtobufSchema)
    return schema.message(schema.indexes.name(path))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or "it does not fit the schema"
