"""Now or later: the one form of an answer that is often there at once.

Who answers a request, or helps to, returns the answer itself where it is there already, and `Later(work)` where somebody must be
waited for first. `work` is the coroutine that will return it. So the usual answer costs no task and no turn of the loop, and a
type checker sees both cases:

    answer = host.ask(key, decide)              # NowOrLater[Answer]
    if isinstance(answer, Later): …             # park the request, begin a task
    else: …                                     # send it

Who waits in any case writes `await settled(answer)`. What is `Later` must be awaited, once, by somebody. What was true when the
answer was given need not be true a step later: who acts on it does so in the same step.

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
