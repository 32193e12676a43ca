"""The fields and oneofs of two messages, compared by number whatever oneof they are in, so that a oneof that is renamed hides
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from google.protobuf import descriptor_pb2

from penstock.schemas.protobuf.differences import (
    FIELD_ADDED,
    FIELD_MOVED_TO_EXISTING_ONEOF,
    FIELD_REMOVED,
    MULTIPLE_FIELDS_MOVED_TO_ONEOF,
    ONEOF_ADDED,
    ONEOF_FIELD_ADDED,
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL,
    ONEOF_FIELD_REMOVED,
    ONEOF_REMOVED,
    REQUIRED_FIELD_ADDED,
    REQUIRED_FIELD_REMOVED,
    Difference,
    TypeComparison,
)
from penstock.schemas.protobuf.fields_compared import Compared

_REQUIRED = descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED
_Found = Difference | TypeComparison


class Members(NamedTuple):
    fields: dict[int, Compared]
    oneof_of: dict[int, str]
    oneofs: dict[str, list[int]]


def compare_members(
    old: Members,
    new: Members,
    path: list[str],
    compare: Callable[[Compared, Compared, list[str]], Iterator[_Found]],
) -> Iterator[_Found]:
    yield from _joined(old, new, path)
    for name in sorted({*old.oneofs, *new.oneofs}):
        if name not in new.oneofs:
            yield Difference(ONEOF_REMOVED, _path(path, name))
        elif name not in old.oneofs:
            yield Difference(ONEOF_ADDED, _path(path, name))
    for number in sorted({*old.fields, *new.fields}):
        if number not in new.fields:
            yield from _removed(old, new, number, path)
        elif number not in old.fields:
            yield _added(new, number, path)
        else:
            oneof = new.oneof_of.get(number)
            if oneof is None and number in old.oneof_of:
                yield Difference(ONEOF_FIELD_MOVED_TO_TOP_LEVEL, _path(path, number))
            place = [*path, str(number)] if oneof is None else [*path, oneof, str(number)]
            yield from compare(old.fields[number], new.fields[number], place)


def _joined(old: Members, new: Members, path: list[str]) -> Iterator[Difference]:
    """Fields that could be there together, and no longer can."""
    for name, numbers in new.oneofs.items():
        known = [number for number in numbers if number in old.fields]
        single = [number for number in known if number not in old.oneof_of]
        origins = len({old.oneof_of[number] for number in known if number in old.oneof_of}) + len(single)
        if origins > 1:
            kind = MULTIPLE_FIELDS_MOVED_TO_ONEOF if len(single) > 1 else FIELD_MOVED_TO_EXISTING_ONEOF
            yield Difference(kind, _path(path, name))


def _removed(old: Members, new: Members, number: int, path: list[str]) -> Iterator[Difference]:
    oneof = old.oneof_of.get(number)
    if oneof is None:
        required = old.fields[number].label == _REQUIRED
        yield Difference(REQUIRED_FIELD_REMOVED if required else FIELD_REMOVED, _path(path, number))
        return
    # A oneof that is gone with all that was in it takes nothing from the others.
    gone = oneof not in new.oneofs and not any(each in new.fields for each in old.oneofs[oneof])
    if not gone:
        yield Difference(ONEOF_FIELD_REMOVED, _path(path, oneof, number))


def _added(new: Members, number: int, path: list[str]) -> Difference:
    oneof = new.oneof_of.get(number)
    if oneof is not None:
        return Difference(ONEOF_FIELD_ADDED, _path(path, oneof, number))
    required = new.fields[number].label == _REQUIRED
    return Difference(REQUIRED_FIELD_ADDED if required else FIELD_ADDED, _path(path, number))


def _path(path: list[str], *more: object) -> str:
    return "#/" + "/".join([*path, *map(str, more)])
