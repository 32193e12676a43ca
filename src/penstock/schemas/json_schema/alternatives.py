"""Whether the place of a mistake can be found in bounded time.

A validator that explains why no alternative of an `anyOf` fits tries them all and explains each. Where alternatives contain
alternatives, that multiplies; where they contain themselves, it grows with the depth of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from penstock.schemas.json_schema import drafts
from penstock.schemas.json_schema.documents import Documents, Place

MAX_EXPANSION: Final = 20_000
"""Schemas below one alternative, each counted as often as it is reached."""
_UNIONS: Final = ("anyOf", "oneOf")


def can_be_explained(documents: Documents) -> bool:
    sizes: dict[int, int] = {}
    """Of what is below a schema. It is 0 while that is being counted: a schema that meets itself there contains itself."""
    return all(_expansion(documents, place, sizes) <= MAX_EXPANSION for place in _unions(documents))


def _unions(documents: Documents) -> Iterator[Place]:
    for place in documents.places:
        if any(keyword in place.value for keyword in _UNIONS):
            yield place


def _expansion(documents: Documents, start: Place, sizes: dict[int, int]) -> int:
    """More than MAX_EXPANSION when it contains itself."""
    known = sizes.get(id(start.value))
    if known is not None:
        return known
    stack: list[tuple[Place, Iterator[Place], list[int]]] = [(start, _below(documents, start), [1])]
    sizes[id(start.value)] = 0
    while True:
        place, below, total = stack[-1]
        child = next(below, None)
        if child is None or total[0] > MAX_EXPANSION:
            sizes[id(place.value)] = total[0]
            stack.pop()
            if not stack:
                return total[0]
            stack[-1][2][0] += total[0]
            continue
        size = sizes.get(id(child.value))
        if size is None:
            sizes[id(child.value)] = 0
            stack.append((child, _below(documents, child), [1]))
        else:
            total[0] += size or MAX_EXPANSION + 1


def _below(documents: Documents, place: Place) -> Iterator[Place]:
    schema: dict[str, Any] = place.value
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        reference = schema.get(keyword)
        target = documents.target_of(place, reference) if isinstance(reference, str) else None
        if target is not None and isinstance(target.value, dict):
            yield target
    for keyword, inner in schema.items():
        if keyword in ("$defs", "definitions"):
            continue
        values: Any = ()
        if isinstance(inner, dict):
            values = (
                inner.values() if keyword in drafts.MAPS else (inner,) if keyword in drafts.SCHEMAS else ()
            )
        elif isinstance(inner, list) and keyword in drafts.LISTS:
            values = inner
        for each in values:
            if isinstance(each, dict):
                yield documents.place_of(each, place)
