"""Whether a Protobuf schema reads what an older one wrote, by Confluent's rules (see `differences` for their names).

Messages and enums are compared by name, fields by number. Messages of other files are compared where a field has them; each
pair once, whatever refers to it, so that the work is bounded by the size of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.model import Incompatibility
from penstock.schemas.protobuf.differences import (
    ENUM_ADDED,
    ENUM_CONST_ADDED,
    ENUM_CONST_CHANGED,
    ENUM_CONST_REMOVED,
    ENUM_REMOVED,
    FIELD_NAMED_TYPE_CHANGED,
    INCOMPATIBLE,
    MESSAGE_ADDED,
    MESSAGE_MOVED,
    MESSAGE_REMOVED,
    PACKAGE_CHANGED,
    Difference,
    TypeComparison,
)
from penstock.schemas.protobuf.elements import PROTO3
from penstock.schemas.protobuf.fields_compared import NO_LABEL, Compared, compare_fields
from penstock.schemas.protobuf.linking import Linked
from penstock.schemas.protobuf.members import Members, compare_members

_Found = Difference | TypeComparison
_MAX_REPORTED: Final = 1_000


class _Type(NamedTuple):
    proto: descriptor_pb2.DescriptorProto
    file: descriptor_pb2.FileDescriptorProto
    is_own: bool


class Types:
    """The messages of a file and of all that it imports, by full name."""

    def __init__(self, own: Linked, imports: Iterable[Linked]) -> None:
        self.file = own.proto
        self._types: dict[str, _Type] = {}
        for file in imports:
            self._add(file.proto, file.proto.message_type, file.proto.package, is_own=False)
        self._add(own.proto, own.proto.message_type, own.proto.package, is_own=True)

    def _add(
        self,
        file: descriptor_pb2.FileDescriptorProto,
        messages: Iterable[descriptor_pb2.DescriptorProto],
        scope: str,
        *,
        is_own: bool,
    ) -> None:
        for message in messages:
            full = f"{scope}.{message.name}" if scope else message.name
            self._types[full] = _Type(message, file, is_own)
            self._add(file, message.nested_type, full, is_own=is_own)

    def __getitem__(self, full_name: str) -> _Type:
        return self._types[full_name]

    def local_name(self, full_name: str) -> str:
        package = self._types[full_name].file.package
        return full_name.removeprefix(f"{package}.") if package else full_name

    def members(
        self, message: descriptor_pb2.DescriptorProto, file: descriptor_pb2.FileDescriptorProto
    ) -> Members:
        proto3 = file.syntax == PROTO3
        oneofs = [each.name for each in message.oneof_decl]
        members = Members({}, {}, {})
        for field in message.field:
            number = field.number
            in_oneof = field.HasField("oneof_index") and not field.proto3_optional
            if in_oneof:
                name = oneofs[field.oneof_index]
                members.oneof_of[number] = name
                members.oneofs.setdefault(name, []).append(number)
            members.fields[number] = self._compared(field, in_oneof=in_oneof, proto3=proto3)
        return members

    def _compared(self, field: _Proto, *, in_oneof: bool, proto3: bool) -> Compared:
        if field.type not in (_Proto.TYPE_MESSAGE, _Proto.TYPE_GROUP):
            return Compared(field, _label(field, in_oneof, proto3), None, "", True)
        full = field.type_name[1:]
        found = self._types[full]
        if found.proto.options.map_entry:
            return Compared(field, NO_LABEL, found.proto, "", True)
        return Compared(field, _label(field, in_oneof, proto3), None, self.local_name(full), found.is_own)

    def entry_fields(self, entry: descriptor_pb2.DescriptorProto) -> list[Compared]:
        """The key and the value of a map."""
        fields = sorted(entry.field, key=lambda each: each.number)
        return [self._compared(each, in_oneof=True, proto3=True) for each in fields]


def _label(field: _Proto, in_oneof: bool, proto3: bool) -> int:
    if in_oneof:
        return NO_LABEL
    if proto3 and field.label != _Proto.LABEL_REPEATED and not field.proto3_optional:
        return NO_LABEL
    return int(field.label)


def incompatibilities(old: Types, new: Types) -> list[Incompatibility]:
    found = [each for each in differences(old, new) if not each.is_compatible]
    return [
        Incompatibility(each.kind, INCOMPATIBLE[each.kind].format(each.path), each.path)
        for each in found[:_MAX_REPORTED]
    ]


def differences(old: Types, new: Types) -> list[Difference]:
    """All of them, those that break nothing too."""
    return _Comparison(old, new).run()


class _Comparison:
    def __init__(self, old: Types, new: Types) -> None:
        self._old = old
        self._new = new
        self._pairs: dict[tuple[str, str], list[_Found]] = {}
        """Messages of other files, and what was found in them."""

    def run(self) -> list[Difference]:
        old, new = self._old, self._new
        found: list[_Found] = []
        if old.file.package != new.file.package:
            found.append(Difference(PACKAGE_CHANGED, _path([])))
        found += self._types(old.file, new.file, old.file, new.file, [])
        waiting = _pairs_in(found)
        while waiting:  # no recursion: files may refer to one another in a long chain
            pair = waiting.pop()
            if pair not in self._pairs:
                self._pairs[pair] = self._pair(*pair)
                waiting += _pairs_in(self._pairs[pair])
        return list(self._told(found))

    def _pair(self, old_name: str, new_name: str) -> list[_Found]:
        old, new = self._old[old_name], self._new[new_name]
        if old.file is new.file:  # a file that everybody has
            return []
        path = self._old.local_name(old_name).split(".")
        return list(self._message(old.proto, new.proto, old.file, new.file, path))

    def _told(self, found: list[_Found]) -> Iterator[Difference]:
        """Those of other files are told where a field leads there first."""
        broken = _broken(self._pairs)
        told: set[tuple[str, str]] = set()
        stack: list[Iterator[_Found]] = [iter(found)]
        while stack:
            each = next(stack[-1], None)
            if each is None:
                stack.pop()
            elif isinstance(each, Difference):
                yield each
            else:
                pair = (each.old, each.new)
                if pair in broken:
                    stack.append(iter([Difference(FIELD_NAMED_TYPE_CHANGED, each.path)]))
                if pair not in told:
                    told.add(pair)
                    stack.append(iter(self._pairs[pair]))

    def _types(
        self,
        old: descriptor_pb2.FileDescriptorProto | descriptor_pb2.DescriptorProto,
        new: descriptor_pb2.FileDescriptorProto | descriptor_pb2.DescriptorProto,
        old_file: descriptor_pb2.FileDescriptorProto,
        new_file: descriptor_pb2.FileDescriptorProto,
        path: list[str],
    ) -> Iterator[_Found]:
        old_messages, new_messages = _messages(old), _messages(new)
        for name in dict.fromkeys([*old_messages, *new_messages]):
            inner = [*path, name]
            if name not in new_messages:
                yield Difference(MESSAGE_REMOVED, _path(inner))
            elif name not in old_messages:
                yield Difference(MESSAGE_ADDED, _path(inner))
            else:
                (old_index, before), (new_index, after) = old_messages[name], new_messages[name]
                yield from self._message(before, after, old_file, new_file, inner)
                if old_index != new_index:
                    yield Difference(MESSAGE_MOVED, _path(inner))
        old_enums = {each.name: each for each in old.enum_type}
        new_enums = {each.name: each for each in new.enum_type}
        for name in dict.fromkeys([*old_enums, *new_enums]):
            inner = [*path, name]
            if name not in new_enums:
                yield Difference(ENUM_REMOVED, _path(inner))
            elif name not in old_enums:
                yield Difference(ENUM_ADDED, _path(inner))
            else:
                yield from _enums(old_enums[name], new_enums[name], inner)

    def _message(
        self,
        old: descriptor_pb2.DescriptorProto,
        new: descriptor_pb2.DescriptorProto,
        old_file: descriptor_pb2.FileDescriptorProto,
        new_file: descriptor_pb2.FileDescriptorProto,
        path: list[str],
    ) -> Iterator[_Found]:
        before, after = self._old.members(old, old_file), self._new.members(new, new_file)
        yield from compare_members(before, after, path, self._field)
        for number, name, group in _groups(old):
            other = next((each for at, _, each in _groups(new) if at == number), None)
            if other is not None:
                yield from self._message(group, other, old_file, new_file, [*path, name])
        yield from self._types(old, new, old_file, new_file, path)

    def _field(self, old: Compared, new: Compared, path: list[str]) -> Iterator[_Found]:
        yield from compare_fields(old, new, _path(path))
        if old.entry is not None and new.entry is not None:
            sides = (self._old.entry_fields(old.entry), self._new.entry_fields(new.entry))
            for one, other in zip(*sides, strict=False):
                yield from compare_fields(one, other, _path(path))


def _messages(
    owner: descriptor_pb2.FileDescriptorProto | descriptor_pb2.DescriptorProto,
) -> dict[str, tuple[int, descriptor_pb2.DescriptorProto]]:
    """With their indexes; without those that nobody wrote as messages."""
    if isinstance(owner, descriptor_pb2.FileDescriptorProto):
        shown = list(owner.message_type)
    else:
        groups = {name for _, name, _ in _groups(owner)}
        shown = [each for each in owner.nested_type if not each.options.map_entry and each.name not in groups]
    return {each.name: (index, each) for index, each in enumerate(shown)}


def _groups(
    owner: descriptor_pb2.DescriptorProto,
) -> list[tuple[int, str, descriptor_pb2.DescriptorProto]]:
    """Number, name and type."""
    fields = [each for each in owner.field if each.type == _Proto.TYPE_GROUP]
    if not fields:
        return []
    nested = {each.name: each for each in owner.nested_type}
    named = [(each.number, each.type_name.rpartition(".")[2]) for each in fields]
    return [(number, name, nested[name]) for number, name in named if name in nested]


def _enums(
    old: descriptor_pb2.EnumDescriptorProto, new: descriptor_pb2.EnumDescriptorProto, path: list[str]
) -> Iterator[Difference]:
    before = {each.number: each.name for each in old.value}
    after = {each.number: each.name for each in new.value}
    for number in sorted({*before, *after}):
        if before.get(number) == after.get(number):
            continue
        kind = ENUM_CONST_CHANGED
        if number not in after:
            kind = ENUM_CONST_REMOVED
        elif number not in before:
            kind = ENUM_CONST_ADDED
        yield Difference(kind, _path([*path, str(number)]))


def _pairs_in(found: Iterable[_Found]) -> list[tuple[str, str]]:
    return [(each.old, each.new) for each in found if isinstance(each, TypeComparison)]


def _broken(pairs: Mapping[tuple[str, str], list[_Found]]) -> set[tuple[str, str]]:
    """Those with something wrong in them, or in one that they have a field of."""
    users: dict[tuple[str, str], list[tuple[str, str]]] = {}
    waiting = []
    for pair, found in pairs.items():
        for used in _pairs_in(found):
            users.setdefault(used, []).append(pair)
        if any(isinstance(each, Difference) and not each.is_compatible for each in found):
            waiting.append(pair)
    broken: set[tuple[str, str]] = set()
    while waiting:
        pair = waiting.pop()
        if pair not in broken:
            broken.add(pair)
            waiting += users.get(pair, ())
    return broken


def _path(parts: list[str]) -> str:
    return "#/" + "/".join(parts)
