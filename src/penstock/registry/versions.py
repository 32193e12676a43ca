"""A version of a subject, and the schema that has an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from penstock.registry.content import Content
from penstock.registry.records import Record, schema_key

Place = tuple[str, int]
"""A subject and the number of a version."""
KNOWN_FIELDS: Final = frozenset(
    {"subject", "version", "id", "schemaType", "references", "metadata", "ruleSet", "schema", "deleted"}
)


class Version:
    __slots__ = ("content", "id", "is_deleted", "more", "number", "other_key", "subject", "timestamp_ms")

    def __init__(
        self,
        subject: str,
        number: int,
        schema_id: int,
        content: Content,
        *,
        is_deleted: bool = False,
        timestamp_ms: int = -1,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.subject = subject
        self.number = number
        self.id = schema_id
        self.content = content
        self.is_deleted = is_deleted
        """By a soft delete: it is there, and shown to those who ask for deleted ones."""
        self.timestamp_ms = timestamp_ms
        self.more = more
        """Fields of its record that we do not know: they are written again when it is."""
        self.other_key: bytes | None = None
        """Under which another registry wrote it, where the bytes differ from ours: compaction sees two keys."""

    @property
    def place(self) -> Place:
        return self.subject, self.number


class Schema:
    """What an id means, and where it is registered."""

    __slots__ = ("content", "guid", "places")

    def __init__(self, content: Content) -> None:
        self.content = content
        self.guid: str | None = None
        """Computed when somebody asks for schemas by GUID."""
        self.places: dict[Place, None] = {}


def gone(version: Version) -> list[Record]:
    """What removes it from the topic."""
    keys = [schema_key(version.subject, version.number)]
    if version.other_key is not None:
        keys.append(version.other_key)
    return [Record(key, None) for key in keys]


def value_of(version: Version, *, is_deleted: bool | None = None) -> bytes:
    """As the topic has it."""
    document: dict[str, Any] = {"subject": version.subject, "version": version.number, "id": version.id}
    document.update(version.more or {})
    document.update(version.content.document())
    document["deleted"] = version.is_deleted if is_deleted is None else is_deleted
    return orjson.dumps(document)
