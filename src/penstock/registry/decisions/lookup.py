"""Which version of a subject a schema is."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.registry.content import Content
from penstock.registry.names import context_of
from penstock.registry.refusals import subject_not_found, version_not_found
from penstock.registry.state import State
from penstock.registry.versions import Version


class Found(NamedTuple):
    subject: str
    version: int
    id: int
    content: Content
    is_deleted: bool
    timestamp_ms: int

    def document(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            **self.content.document(),
        }

    def more(self) -> dict[str, Any]:
        """What newer clients ask for, by a header."""
        found: dict[str, Any] = {"guid": self.content.guid}
        if self.timestamp_ms >= 0:
            found["ts"] = self.timestamp_ms
        if self.is_deleted:
            found["deleted"] = True
        return found


def found(version: Version) -> Found:
    return Found(
        version.subject, version.number, version.id, version.content, version.is_deleted, version.timestamp_ms
    )


def found_in(state: State, subject: str, content: Content, *, deleted: bool = False) -> Found | None:
    """The newest version that says the same."""
    versions = state.subjects.get(subject)
    if versions is None:
        return None
    context = context_of(subject)
    schema_id = state.id_of(context, content)
    if schema_id is None:
        return None
    best: Version | None = None
    for place in state.schemas[context][schema_id].places:
        if place[0] == subject:
            version = versions[place[1]]
            if (deleted or not version.is_deleted) and (best is None or version.number > best.number):
                best = version
    return None if best is None else found(best)


def version_of(state: State, subject: str, number: int, *, deleted: bool = False) -> Version:
    """`number` -1 is the newest that is not deleted."""
    version = state.latest(subject) if number == -1 else state.subjects.get(subject, {}).get(number)
    if version is not None and (deleted or not version.is_deleted):
        return version
    if not state.has(subject, deleted=deleted):
        raise subject_not_found(subject)
    raise version_not_found(number)
