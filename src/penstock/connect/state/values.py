"""Keys and values as bytes: JSON as Kafka's JsonConverter writes it without schemas."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Written(NamedTuple):
    """A record to be written; no value deletes what was said under the key."""

    key: str
    value: dict[str, Any] | None


def packed(value: object) -> bytes | None:
    if value is None:
        return None
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def unpacked(data: bytes | None) -> Any:
    """ValueError for what is no JSON."""
    return None if data is None else json.loads(data)
