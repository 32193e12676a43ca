"""Applies the table: the steps of an API's row, one after the other, around its handler."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.broker.access.guards.forms import Asker, Passage
from penstock.broker.access.guards.table import GUARDS
from penstock.broker.requests.later import Later, NowOrLater

if TYPE_CHECKING:
    from penstock.broker.access.guards.forms import Needed
    from penstock.broker.requests.call import Call


def guarded(
    handle: Callable[..., NowOrLater[Any]],
    response: "type[Any]",
    node: "Needed",
    call: "Call",
    request: Any,
) -> NowOrLater[Any]:
    """What the handler answers to what is allowed of a request, with the refusals of the rest. ApiError where all is refused."""
    finishes: list[Callable[[Any], None]] = []
    asker = Asker(node, call)
    for step in GUARDS[call.header.api_key]:
        passage = step(asker, request, response)
        if passage is not None:
            finishes.append(passage.finish)
            request = passage.request
            if request is None:
                return _finished(response(), finishes)
    answer = handle(node, call, request)
    if not finishes:
        return answer
    if isinstance(answer, Later):
        return Later(_finished_later(answer, finishes))
    return _finished(answer, finishes)


async def _finished_later(answer: Later[Any], finishes: list[Callable[[Any], None]]) -> Any:
    return _finished(await answer, finishes)


def _finished(answer: Any, finishes: list[Callable[[Any], None]]) -> Any:
    for finish in reversed(finishes):
        finish(answer)
    return answer


__all__ = ["Passage", "guarded"]
