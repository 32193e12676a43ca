"""The schema registry as formats and analysis see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from penstock.schemas.model import Referred


class FoundSchema(NamedTuple):
    id: int
    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[tuple[str, str, int], ...] = ()
    """Name, subject, version."""


class SchemaLookup(Protocol):
    """Calls may block. RegistryRefused and Unreachable come out of each."""

    def latest(self, subject: str) -> FoundSchema | None:
        """None: there is no such subject."""

    def by_id(self, schema_id: int, subject: str | None = None) -> FoundSchema | None: ...

    def by_guid(self, guid: UUID) -> FoundSchema | None:
        """Its id may be 0: not all registries tell it."""

    def register(
        self, subject: str, kind: str, text: str, references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        """The id; the same for the same schema."""

    def texts_of(self, references: Sequence[tuple[str, str, int]]) -> Mapping[str, Referred]:
        """The schemas that are referred to, and theirs, by name."""


def subject_of(topic: str, *, is_key: bool) -> str:
    return f"{topic}-key" if is_key else f"{topic}-value"
