"""How a value in a record says which schema it was written with.

    00 | id, four bytes, the first the highest | the value            the usual form
    01 | a GUID, sixteen bytes                 | the value            Confluent's of 2025

In Protobuf's case the value begins with the indexes of the message in its file; `protobuf.values` knows them.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from penstock.schemas.model import InvalidValue

MAGIC: Final = 0
GUID_MAGIC: Final = 1
FRAME_BYTES: Final = 5
GUID_FRAME_BYTES: Final = 17
_FRAME: Final = struct.Struct(">bi")


class Framed(NamedTuple):
    schema: int | UUID
    data: memoryview


def framed(schema_id: int, data: bytes) -> bytes:
    return _FRAME.pack(MAGIC, schema_id) + data


def unframed(value: bytes | memoryview) -> Framed:
    """InvalidValue when it does not begin as such a value does."""
    view = memoryview(value)
    if len(view) >= FRAME_BYTES and view[0] == MAGIC:
        return Framed(_FRAME.unpack_from(view)[1], view[FRAME_BYTES:])
    if len(view) >= GUID_FRAME_BYTES and view[0] == GUID_MAGIC:
        return Framed(UUID(bytes=bytes(view[1:GUID_FRAME_BYTES])), view[GUID_FRAME_BYTES:])
    raise InvalidValue("it does not begin with the id of a schema (a zero byte and four more)")
