"""A request frame: 4 bytes of size, then the header, then the body.

Header v1: api_key i16, api_version i16, correlation_id i32, client_id nullable string (i16 length).
Header v2 (flexible versions): the same, then tagged fields. The client id keeps its old form in both.
Header v0, of ControlledShutdown version 0 alone: no client id.
Response header v0: correlation_id i32; v1 (flexible versions) adds tagged fields; ApiVersions answers with v0 always,
because a client asks it before it knows what the broker understands.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from penstock.model.api_keys import ApiKey
from penstock.wire.apis import APIS, Api
from penstock.wire.errors import Malformed
from penstock.wire.fields import skip_tags

SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_RESPONSE_HEADER: Final = struct.Struct(">ii")
_FLEXIBLE_RESPONSE_HEADER: Final = struct.Struct(">iib")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_CONTROLLED_SHUTDOWN: Final = int(ApiKey.CONTROLLED_SHUTDOWN)

MIN_FRAME_BYTES: Final = 8
"""api_key, api_version and correlation_id: less than this is not a request of any version."""


class UnsupportedApi(Malformed):
    """A frame whose API or version this broker does not speak: there is no form in which to answer it."""


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    api: Api
    is_flexible: bool


_unpack_header: Final = _HEADER.unpack_from
# `RequestHeader(…)` runs a Python-level __new__; this is the same without it, in half the time.
_new_header: Final = cast(Callable[[Any, Any], RequestHeader], tuple.__new__)


def read_header(frame: memoryview) -> RequestHeader:
    """The header of a whole frame (without its size); Malformed when it cannot be read, UnsupportedApi when unknown."""
    try:
        api_key, api_version, correlation_id, length = _unpack_header(frame)
    except struct.error:
        raise Malformed(f"a frame of {len(frame)} bytes is not a request") from None
    api = APIS.get(api_key)
    if api is None:
        raise UnsupportedApi(f"unknown API key {api_key}")
    if not api.min_version <= api_version <= api.max_version and api_key != _API_VERSIONS:
        raise UnsupportedApi(f"{api.name} version {api_version} is not supported")
    if api_key == _CONTROLLED_SHUTDOWN and api_version == 0:
        return RequestHeader(api_key, api_version, correlation_id, None, 8, api, False)
    offset = 10
    client_id: str | None = None
    if length >= 0:
        offset += length
        if offset > len(frame):
            raise Malformed("the client id runs past the end of the frame")
        try:
            client_id = str(frame[10:offset], "utf-8")
        except UnicodeDecodeError:
            raise Malformed("the client id is not UTF-8") from None
    elif length != -1:
        raise Malformed(f"a client id of {length} bytes")
    is_flexible = api_version >= api.flexible_from
    if is_flexible:
        try:
            offset = skip_tags(frame, offset)
        except IndexError:
            raise Malformed("the frame ends before its tagged fields") from None
    return _new_header(
        RequestHeader, (api_key, api_version, correlation_id, client_id, offset, api, is_flexible)
    )


def response_prefix(header: RequestHeader, body_bytes: int) -> bytes:
    """Size and response header in front of a body of that many bytes."""
    if header.is_flexible and header.api_key != _API_VERSIONS:
        return _FLEXIBLE_RESPONSE_HEADER.pack(body_bytes + 5, header.correlation_id, 0)
    return _RESPONSE_HEADER.pack(body_bytes + 4, header.correlation_id)


def request_prefix(
    api_key: int,
    api_version: int,
    *,
    correlation_id: int,
    client_id: bytes,
    is_flexible: bool,
    body_bytes: int,
) -> bytes:
    """Size and header, as brokers write them, in front of the body of a request."""
    header = _HEADER.pack(api_key, api_version, correlation_id, len(client_id)) + client_id
    if is_flexible:
        header += b"\x00"
    return SIZE.pack(len(header) + body_bytes) + header


def response_body_offset(frame: memoryview, api_key: int, *, is_flexible: bool) -> int:
    """Where the body begins in an answer (without its size); Malformed where there is none."""
    if not is_flexible or api_key == _API_VERSIONS:
        return 4
    try:
        return skip_tags(frame, 4)
    except IndexError:
        raise Malformed("the answer ends in its header") from None
