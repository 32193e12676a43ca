import asyncio
from collections.abc import Callable

DEADLINE_S = 60.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)
