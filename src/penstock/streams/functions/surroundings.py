"""What functions such as UNIX_TIMESTAMP() and UUID() ask of the world: the time, and chance. Tests put in their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


@dataclass(slots=True)
class Surroundings:
    now_ms: Callable[[], int] = _now_ms
    random_bytes: Callable[[int], bytes] = os.urandom


WORLD: Final = Surroundings()
