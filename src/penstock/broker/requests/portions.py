"""A large request, cut into portions that are handled one after the other, and their answers joined again.

A handler says by `PORTIONS` where in its request the list is that may be long, and where its answers are in the response:

    PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)

Of several the first counts whose list is not empty. Each item of a list must be answered by one item, in the same order; then the
answer to a topic that was cut in two is put together again. Portions are handled in their order, but each is decided for itself:
that an item was named in an earlier portion already is not seen by a later one.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

from penstock.wire.schema import Struct

PORTION: Final = 512
"""Items in one portion: a few milliseconds of the loop."""


class Portions(NamedTuple):
    asked: tuple[str, ...]
    """Fields of the request, from the outer list to the innermost."""
    answered: tuple[str, ...]
    """The same of the response."""


class Portion(NamedTuple):
    request: Any
    continues: int
    """How many of the nested lists begin with an item whose first part was in the portion before."""


def of_request(portions: Sequence[Portions], request: Struct) -> Portions | None:
    return next((each for each in portions if getattr(request, each.asked[0])), None)


def cut(request: Struct, path: tuple[str, ...], *, size: int = PORTION) -> Iterator[Portion]:
    rest: Struct | None = request
    continues = 0
    while rest is not None:
        head, rest, _, deeper = _cut(rest, path, size)
        yield Portion(head, continues)
        continues = deeper


def _cut(struct: Struct, path: tuple[str, ...], room: int) -> tuple[Struct, Struct | None, int, int]:
    """The struct with as many innermost items as there is room for, one with the others, how many the first has, and how many of
    the lists in the second begin with a part.
    """
    field, *deeper = path
    items = getattr(struct, field)
    if not items:
        return struct, None, 1, 0
    if not deeper:
        if len(items) <= room:
            return struct, None, len(items), 0
        return _with(struct, field, items[:room]), _with(struct, field, items[room:]), room, 0
    taken: list[Struct] = []
    left = room
    for number, item in enumerate(items):
        if left <= 0:
            return _with(struct, field, taken), _with(struct, field, items[number:]), room, 0
        head, rest, count, continues = _cut(item, tuple(deeper), left)
        taken.append(head)
        left -= count
        if rest is not None:
            others = [rest, *items[number + 1 :]]
            return _with(struct, field, taken), _with(struct, field, others), room, continues + 1
    return struct, None, room - left, 0


def _with(struct: Struct, field: str, items: Sequence[Any]) -> Struct:
    changed = copy(struct)
    setattr(changed, field, items)
    return changed


def join(whole: Any, more: Any, path: tuple[str, ...], continues: int) -> None:
    """Add the answer to a portion to that of all before it. An error of a part is one of the whole."""
    if getattr(more, "error_code", 0):
        whole.error_code = more.error_code
    if getattr(more, "throttle_time_ms", 0) > getattr(whole, "throttle_time_ms", 0):
        whole.throttle_time_ms = more.throttle_time_ms
    if not path:
        return
    items = getattr(whole, path[0])
    if not isinstance(items, list):
        items = list(items or ())
        setattr(whole, path[0], items)
    added = getattr(more, path[0]) or ()
    if continues and items and added:
        join(items[-1], added[0], path[1:], continues - 1)
        added = added[1:]
    items.extend(added)
