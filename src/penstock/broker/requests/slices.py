"""Requests with many elements: they are answered in slices, and other clients are served in between.

A request of 8 MB can name a million groups. Most answers are ready at once, so awaiting them does not yield to other tasks.
"""

from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

GIVE_WAY_EVERY: Final = 256

Key = TypeVar("Key")
Answer = TypeVar("Answer")


async def in_slices(
    answer: Callable[[Key], Awaitable[Answer]], keys: Iterable[Key], *, slice_size: int = GIVE_WAY_EVERY
) -> list[Answer]:
    answers = []
    for number, key in enumerate(keys, 1):
        answers.append(await answer(key))
        if number % slice_size == 0:
            await sleep(0)
    return answers
