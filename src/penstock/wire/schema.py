"""The form of a message: `Struct`, and the table of fields that each struct carries for the codec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

# Kafka's own mark for "no id".
ZERO_UUID = bytes(16)

# A FLEXIBLE_FROM that no version reaches.
NEVER_FLEXIBLE = 32767

# First and last version, both inclusive.
Versions: TypeAlias = tuple[int, int]

# name, type, versions that have the field, versions in which it may be null, tag, default, nested struct.
# The types are Kafka's names; "[]" before a name is an array, as in Kafka's schemas: "[]int32", "[]struct".
# A "legacy_string" has a two-byte length in flexible versions too.
# A tagged field is tagged in every version that has it. A struct's default of None is null where the field
# may be null, and otherwise a struct of defaults.
Field: TypeAlias = tuple[str, str, Versions, "Versions | None", "int | None", object, "type[Struct] | None"]


class Struct:
    """What all messages and the structs inside them share. Mutable, compared by value, without a hash."""

    __slots__: tuple[str, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    VERSIONS: ClassVar[Versions] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER_FLEXIBLE

    def _values(self) -> Iterator[object]:
        for name in self.__slots__:
            value = getattr(self, name)
            # Handlers may give a tuple where the decoder gives a list.
            yield tuple(value) if isinstance(value, list) else value

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        assert isinstance(other, Struct)
        return all(mine == theirs for mine, theirs in zip(self._values(), other._values(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{self.__class__.__name__}({fields})"


class Message(Struct):
    """A request or a response: a struct that stands alone under an API key."""

    __slots__ = ()

    API_KEY: ClassVar[int] = -1
