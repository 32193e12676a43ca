"""A schema registry, as formats and analysis see it, over the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote
from uuid import UUID

from penstock.client.schema_registry import RegisteredSchema, RegistryRefused, SchemaRegistry
from penstock.schemas.model import Referred, SchemaReference
from penstock.streams.formats.registry import FoundSchema

NOT_FOUND: Final = 404


class ClientLookup:
    """`formats.registry.SchemaLookup`. A login that may not see a schema is told that there is none, as ksqlDB does. It may be
    sent to other processes: each opens connections of its own."""

    def __init__(self, urls: str, properties: Mapping[str, str] | None = None) -> None:
        self._given = urls, dict(properties or {})
        self._client = _Deleting(*self._given)

    def __reduce__(self) -> tuple[type[ClientLookup], tuple[str, dict[str, str]]]:
        return ClientLookup, self._given

    def latest(self, subject: str) -> FoundSchema | None:
        try:
            return _found(self._client.latest(subject))
        except RegistryRefused as refused:
            if refused.status in (NOT_FOUND, 401, 403):
                return None
            raise

    def by_id(self, schema_id: int, subject: str | None = None) -> FoundSchema | None:
        try:
            return _found(self._client.by_id(schema_id, subject))
        except RegistryRefused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise

    def by_guid(self, guid: UUID) -> FoundSchema | None:
        try:
            return _found(self._client.by_guid(guid))
        except RegistryRefused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise

    def register(
        self, subject: str, kind: str, text: str, references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        return self._client.register(subject, text, kind, [SchemaReference(*each) for each in references])

    def delete(self, subject: str) -> None:
        """Softly, as DELETE does: its schemas are still found by their ids. What is not there is deleted already."""
        try:
            self._client.delete(subject)
        except RegistryRefused as refused:
            if refused.status != NOT_FOUND:
                raise
        self._client = _Deleting(*self._given)  # the old one remembers the subject

    def texts_of(self, references: Sequence[tuple[str, str, int]]) -> Mapping[str, Referred]:
        return self._client.texts_of([SchemaReference(*each) for each in references])


class _Deleting(SchemaRegistry):
    def delete(self, subject: str) -> None:
        self.ask("DELETE", f"/subjects/{quote(subject, safe='')}", form=list)


def _found(schema: RegisteredSchema) -> FoundSchema:
    references = tuple((each.name, each.subject, each.version) for each in schema.references)
    return FoundSchema(schema.id, schema.kind, schema.text, references)
