"""What a schema refers to, gathered from the state: texts by the names under which schemas know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.registry.candidates import LATEST
from penstock.registry.names import beside
from penstock.registry.refusals import InvalidText
from penstock.registry.state import State
from penstock.schemas.model import Referred, SchemaReference

MAX_REFERRED: Final = 5000
MAX_CHARACTERS: Final = 64 << 20


def with_numbers(
    state: State, subject: str, references: Sequence[SchemaReference]
) -> tuple[SchemaReference, ...]:
    """A reference to the newest version becomes one to its number."""
    found = []
    for each in references:
        if each.version == LATEST:
            latest = state.latest(beside(subject, each.subject))
            if latest is None:
                raise _missing(each)
            each = each._replace(version=latest.number)
        found.append(each)
    return tuple(found)


def texts_of(state: State, subject: str, references: Sequence[SchemaReference]) -> dict[str, Referred]:
    """With what those refer to, too; what others need comes before them. InvalidText where one is not there."""
    texts: dict[str, Referred] = {}
    # A walk without recursion: what is begun, and where it stands.
    begun: set[str] = set()
    stack: list[tuple[str, list[SchemaReference], SchemaReference | None]] = [
        (subject, list(reversed(references)), None)
    ]
    size = 0
    while stack:
        parent, waiting, of = stack[-1]
        if not waiting:
            stack.pop()
            if of is not None:
                version = state.subjects[beside(stack[-1][0], of.subject)][of.version]
                texts[of.name] = Referred(version.content.text, version.content.references)
            continue
        reference = waiting.pop()
        if reference.name in texts or reference.name in begun:
            continue
        place = beside(parent, reference.subject)
        found = state.subjects.get(place, {}).get(reference.version)
        if found is None:
            raise _missing(reference)
        begun.add(reference.name)
        size += len(found.content.text)
        if len(begun) > MAX_REFERRED or size > MAX_CHARACTERS:
            raise InvalidText("the schema refers to too much, by way of its references")
        stack.append((place, list(reversed(found.content.references)), reference))
    return texts


def _missing(reference: SchemaReference) -> InvalidText:
    return InvalidText(
        f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
    )
