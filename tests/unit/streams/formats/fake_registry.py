"""A schema registry in memory, which takes every schema."""

from collections.abc import Sequence
from uuid import UUID

from penstock.schemas.fingerprints import guid_of
from penstock.schemas.model import Referred, SchemaReference
from penstock.streams.formats.registry import FoundSchema


class FakeLookup:
    def __init__(self) -> None:
        self.found: dict[int, FoundSchema] = {}
        self.subjects: dict[str, list[int]] = {}

    def latest(self, subject: str) -> FoundSchema | None:
        return self.found[self.subjects[subject][-1]] if subject in self.subjects else None

    def by_id(self, schema_id: int, subject: str | None = None) -> FoundSchema | None:
        return self.found.get(schema_id)

    def by_guid(self, guid: UUID) -> FoundSchema | None:
        return next((each for each in self.found.values() if guid_of(each.text) == str(guid)), None)

    def register(
        self, subject: str, kind: str, text: str, references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        for each in self.found.values():
            if (each.kind, each.text, each.references) == (kind, text, references):
                self.subjects.setdefault(subject, []).append(each.id)
                return each.id
        schema_id = len(self.found) + 1
        self.found[schema_id] = FoundSchema(schema_id, kind, text, references)
        self.subjects.setdefault(subject, []).append(schema_id)
        return schema_id

    def texts_of(self, references: Sequence[tuple[str, str, int]]) -> dict[str, Referred]:
        texts: dict[str, Referred] = {}
        for name, subject, version in references:
            schema = self.found[self.subjects[subject][version - 1]]
            texts |= self.texts_of(schema.references)
            texts[name] = Referred(schema.text, tuple(SchemaReference(*each) for each in schema.references))
        return texts
