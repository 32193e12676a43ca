"""Giving way to other requests in a loop that is long."""

from __future__ import annotations

import asyncio
import time
from typing import Final

TURN_S: Final = 0.002
"""How long one request may hold the loop before the others have their turn."""
LOOK_EVERY: Final = 32


class Turns:
    """`if turns.is_over(): await turns.give_way()`."""

    __slots__ = ("_count", "_until_s")

    def __init__(self) -> None:
        self._count = 0
        self._until_s = time.perf_counter() + TURN_S

    def is_over(self) -> bool:
        self._count += 1
        return self._count % LOOK_EVERY == 0 and time.perf_counter() > self._until_s

    async def give_way(self) -> None:
        await asyncio.sleep(0)
        self._until_s = time.perf_counter() + TURN_S
