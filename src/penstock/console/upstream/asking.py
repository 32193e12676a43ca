"""Blocking questions to HTTP servers, asked from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

from penstock.client.errors import UserError

T = TypeVar("T")

THREADS: Final = 12
MAX_WAITING: Final = 300
TIMEOUT_S: Final = 10.0
"""How long a server may take to answer a question of a page."""

_waiting = 0


async def asked(work: Callable[[], T]) -> T:
    """What `work` returns or raises. It runs to its end also when nobody waits for it any more."""
    global _waiting
    if _waiting >= MAX_WAITING:
        raise UserError(f"{_waiting} questions to the servers beside the brokers are waiting; try again soon")
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)
    finally:
        _waiting -= 1


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="console-upstream")
