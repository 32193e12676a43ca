"""A request as it came over the wire, and its answer: read by version, and written again where something in it has changed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Final

from penstock.model.api_keys import ApiKey
from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.framing import SIZE, RequestHeader, read_header, response_body_offset, response_prefix
from penstock.wire.schema import Message

NO_ACKS: Final = 0


@cache
def _messages(api_name: str) -> tuple[type[Message], type[Message]]:
    module = importlib.import_module(f"penstock.wire.messages.{api_name}")
    name = "".join(part.title() for part in api_name.split("_"))
    return getattr(module, f"{name}Request"), getattr(module, f"{name}Response")


class Call:
    """`request` is None where it is not one that we can read: such a frame is passed on as it is."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.header: RequestHeader | None = None
        self.request: Any | None = None
        try:
            self.header = read_header(memoryview(frame))
            kind, _ = _messages(self.header.api.name)
            self.request = decode(kind, self.header.api_version, frame, self.header.body_offset)[0]
        except Malformed:
            pass

    @property
    def api_key(self) -> int:
        return int.from_bytes(self.frame[:2], "big", signed=True)

    @property
    def name(self) -> str:
        return ApiKey(self.api_key).name if self.header is not None else f"API {self.api_key}"

    @property
    def version(self) -> int:
        assert self.header is not None
        return self.header.api_version

    @property
    def wants_answer(self) -> bool:
        return self.request is None or self.api_key != ApiKey.PRODUCE or self.request.acks != NO_ACKS

    def frame_of(self, request: Message) -> bytes:
        assert self.header is not None
        return self.frame[: self.header.body_offset] + encode(request, self.version)

    def read_answer(self, frame: bytes) -> Any:
        assert self.header is not None
        _, kind = _messages(self.header.api.name)
        offset = response_body_offset(memoryview(frame), self.api_key, is_flexible=self.header.is_flexible)
        return decode(kind, self.version, frame, offset)[0]

    def answered(self, answer: Message) -> bytes:
        """With its size in front."""
        assert self.header is not None
        body = encode(answer, self.version)
        return response_prefix(self.header, len(body)) + body


def sized(frame: bytes) -> bytes:
    return SIZE.pack(len(frame)) + frame
