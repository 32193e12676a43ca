"""Schemas of a new stream or table are registered when it is made: a wrong one is refused at once, not at the first row.

CREATE … AS SELECT registers its sink's always, so that the registry says whether it goes with the versions before. CREATE does
so only where the subject has none: the topic may be somebody else's. A schema that is named by its id becomes the topic's.
"""

from __future__ import annotations

from typing import Protocol

from penstock.client.errors import Refused, Unreachable
from penstock.sql.analysis.refusals import StatementRefused
from penstock.streams.formats.inference import INFERABLE, to_register
from penstock.streams.formats.registry import SchemaLookup, subject_of
from penstock.streams.plan.sources import Format, Source


class ServerSchemas(SchemaLookup, Protocol):
    def delete(self, subject: str) -> None:
        """All versions of a subject, which may be gone already."""


def register(lookup: SchemaLookup | None, source: Source, *, if_there_is_none: bool) -> None:
    """StatementRefused; Unreachable where the registry does not answer."""
    wanted = to_register(source.schema, source.formats, source.topic)
    named = [
        (form, is_key)
        for form, is_key in ((source.formats.key, True), (source.formats.value, False))
        if form.name in INFERABLE and form.property("schema_id") is not None
    ]
    if not wanted and not named:
        return
    if lookup is None:
        form = source.formats.value if source.formats.value.name in INFERABLE else source.formats.key
        raise StatementRefused(
            f"Cannot create topic '{source.topic}' with format {form.name} without configuring 'ksql.schema.registry.url'"
        )
    try:
        for subject, kind, text in wanted:
            if not if_there_is_none or lookup.latest(subject) is None:
                lookup.register(subject, kind, text)
        for form, is_key in named:
            _register_named(lookup, source, form, is_key)
    except Refused as error:
        raise StatementRefused(f"Could not register schema for topic: {error}") from None


def forget_schemas(lookup: ServerSchemas | None, source: Source) -> None:
    """Those of a topic that was deleted go with it: a new topic of its name need not be compatible."""
    if lookup is None:
        return
    for form, is_key in ((source.formats.key, True), (source.formats.value, False)):
        if form.name in INFERABLE:
            try:
                lookup.delete(subject_of(source.topic, is_key=is_key))
            except (Refused, Unreachable) as error:
                raise StatementRefused(
                    f"Could not clean up the schema registry for topic: {source.topic}: {error}"
                ) from None


def _register_named(lookup: SchemaLookup, source: Source, form: Format, is_key: bool) -> None:
    schema_id = int(form.property("schema_id") or 0)
    found = lookup.by_id(schema_id)
    if found is None:  # analysis has found it a moment ago
        raise StatementRefused(f"The schema registry has no schema with the id {schema_id}.")
    subject = subject_of(source.topic, is_key=is_key)
    given = lookup.register(subject, found.kind, found.text, found.references)
    if given != schema_id:
        word = "KEY_SCHEMA_ID" if is_key else "VALUE_SCHEMA_ID"
        raise StatementRefused(
            f"Schema id registered is {given} which is different from provided {word} {schema_id}.\n"
            f"Topic: {source.topic}\nSubject: {subject}\nSchema: {found.text}"
        )
