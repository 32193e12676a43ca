"""Whether a schema may be the next version of a subject: the levels, and what is said when it may not.

Versions are looked at from the newest to the oldest, and the first that does not fit ends the search, as in Confluent's registry.
BACKWARD: the new one reads what the old one wrote. FORWARD: the old one reads what the new one writes. FULL: both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from penstock.schemas.model import AVRO, JSON, Incompatibility, InvalidSchema, Schema

NONE: Final = "NONE"
BACKWARD: Final = "BACKWARD"
FORWARD: Final = "FORWARD"
FULL: Final = "FULL"
TRANSITIVE: Final = "_TRANSITIVE"
LEVELS: Final = (
    NONE, BACKWARD, BACKWARD + TRANSITIVE, FORWARD, FORWARD + TRANSITIVE, FULL, FULL + TRANSITIVE
)  # fmt: skip
STRICT: Final = "STRICT"
LENIENT: Final = "LENIENT"
POLICIES: Final = (STRICT, LENIENT)
MAX_SHOWN_CHARACTERS: Final = 10 << 10
"""Of the text of a version that does not fit."""
LENIENT_HINT: Final = (
    "{hint: 'compatibilityPolicy LENIENT of this subject or of all would allow this change'}"
)
"""A line of our own behind Confluent's: people do not expect that an optional property of a JSON Schema is refused."""


class Existing(NamedTuple):
    """A version that is there."""

    version: int
    schema: Schema


def check(
    new: Schema,
    existing: Iterable[Existing],
    level: str,
    *,
    policy: str = STRICT,
    validate_fields: bool = False,
    besides: Sequence[str] = (),
) -> list[str]:
    """What is wrong, as the lines that Confluent's registry answers; nothing: it is compatible. `existing` is newest first.
    `besides`: what somebody else has found already, such as fields with reserved names."""
    found, hints = list(besides), []
    misfit = _first_misfit(new, existing, level, policy)
    if misfit is not None:
        found += misfit.lines
        if policy == STRICT and new.kind == JSON and not besides:
            would_do = not _differences(new, misfit.older, level.removesuffix(TRANSITIVE), LENIENT)
            hints = [LENIENT_HINT] if would_do else []
    if not found:
        return []
    return [*found, f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level}'}}", *hints]


class _Misfit(NamedTuple):
    older: Existing
    lines: list[str]


def _first_misfit(new: Schema, existing: Iterable[Existing], level: str, policy: str) -> _Misfit | None:
    if level == NONE:
        return None
    direction = level.removesuffix(TRANSITIVE)
    for older in existing:
        lines = _differences(new, older, direction, policy)
        if lines:
            return _Misfit(older, lines)
        if not level.endswith(TRANSITIVE):
            break
    return None


def _differences(new: Schema, older: Existing, direction: str, policy: str) -> list[str]:
    """FULL looks forward first, and names the version only for what it then finds backward, as Confluent's registry does."""
    if new.kind != older.schema.kind:
        return ["Incompatible because of different schema type"]
    found: list[str] = []
    if direction in (FORWARD, FULL):
        found += _told(older.schema, new, policy, reader="old", writer="new")
    if direction in (BACKWARD, FULL):
        backward = _told(new, older.schema, policy, reader="new", writer="old")
        found += backward
        if not backward:
            return found
    return found + _version(older) if found else []


def _told(reads: Schema, wrote: Schema, policy: str, *, reader: str, writer: str) -> list[str]:
    try:
        found = reads.incompatibilities(wrote, policy=policy)
    except InvalidSchema as error:
        return [f"Unexpected exception during compatibility check: {error}"]
    return [_line(each, reads.kind, reader, writer) for each in found]


def _line(found: Incompatibility, kind: str, reader: str, writer: str) -> str:
    words = found.description.replace("%new%", reader).replace("%old%", writer)
    if kind == AVRO:
        return f"{{errorType:'{found.kind}', description:'{words}', additionalInfo:'{found.additional}'}}"
    last_quote = "'" if kind == JSON else '"'  # Confluent's
    return f'{{errorType:"{found.kind}", description:"{words}{last_quote}}}'


def _version(older: Existing) -> list[str]:
    text = older.schema.text
    if len(text) > MAX_SHOWN_CHARACTERS:
        shown = f"{{oldSchema: <truncated> '{text[:MAX_SHOWN_CHARACTERS]}...'}}"
    else:
        shown = f"{{oldSchema: '{text}'}}"
    return [f"{{oldSchemaVersion: {older.version}}}", shown]
