"""Records for tests, made without a broker."""

from __future__ import annotations

from typing import Any, cast

from confluent_kafka import Message

from penstock.consumer import Record


class MadeMessage:
    """What a Record asks of a client's message."""

    def __init__(self, value: bytes | None, *, key: bytes | None, offset: int, headers: Any) -> None:
        self._value, self._key, self._offset, self._headers = value, key, offset, headers

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> Any:
        return self._headers


def record(
    value: bytes | None = b"v", *, key: bytes | None = None, offset: int = 0, headers: Any = None
) -> Record:
    return Record(cast(Message, MadeMessage(value, key=key, offset=offset, headers=headers)), term=1)
