"""Now or later: the form of an answer that is often ready at once.

A function returns the answer itself if it is ready, and `Later(work)` if it must wait first. `work` is the coroutine that will
return the answer. So the usual answer needs no task and no turn of the loop, and a type checker sees both cases:

    answer = host.ask(key, decide)              # NowOrLater[Answer]
    if isinstance(answer, Later): …             # park the request, begin a task
    else: …                                     # send it

To wait in both cases write `await settled(answer)`. A `Later` must be awaited exactly once. The answer may be outdated one step
later, so act on it in the same step.

Handlers (`handlers/*.py`) that are `async def` are always `Later`: dispatch sees to that.
"""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()


NowOrLater: TypeAlias = T | Later[T]


async def settled(answer: NowOrLater[T]) -> T:
    return await answer if isinstance(answer, Later) else answer
