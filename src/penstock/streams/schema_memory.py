"""A schema registry in memory, which takes every schema: for tests of programs, and to look whether columns have a schema."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.schemas.fingerprints import guid_of
from penstock.schemas.model import Referred, SchemaReference
from penstock.streams.formats.registry import FoundSchema


class MemoryRegistry:
    """`formats.registry.SchemaLookup`."""

    def __init__(self) -> None:
        self._schemas: dict[int, FoundSchema] = {}
        self._subjects: dict[str, list[int]] = {}

    def latest(self, subject: str) -> FoundSchema | None:
        return self._schemas[self._subjects[subject][-1]] if subject in self._subjects else None

    def by_id(self, schema_id: int, subject: str | None = None) -> FoundSchema | None:
        return self._schemas.get(schema_id)

    def by_guid(self, guid: UUID) -> FoundSchema | None:
        for found in self._schemas.values():
            references = [SchemaReference(*each) for each in found.references]
            if guid_of(found.text, references) == str(guid):
                return found
        return None

    def register(
        self, subject: str, kind: str, text: str, references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        wanted = (kind, text, references)
        found = next((each.id for each in self._schemas.values() if each[1:] == wanted), None)
        schema_id = len(self._schemas) + 1 if found is None else found
        self._schemas[schema_id] = FoundSchema(schema_id, *wanted)
        versions = self._subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def texts_of(self, references: Sequence[tuple[str, str, int]]) -> dict[str, Referred]:
        texts: dict[str, Referred] = {}
        for name, subject, version in references:
            schema = self._schemas[self._subjects[subject][version - 1]]
            texts |= self.texts_of(schema.references)
            texts[name] = Referred(schema.text, tuple(SchemaReference(*each) for each in schema.references))
        return texts
