"""What the topic says: subjects with their versions, ids, configs, modes, contexts. Pure; changed by `replay` only.

Texts are not parsed here: ten thousand schemas are read in well under a second.

What a replay does with what cannot be: a record that is no JSON, or of an unknown keytype, is passed over. A version whose id is
another schema's already is passed over, too, as Confluent's registry does: the first one has the id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from penstock.registry import records, terms
from penstock.registry.content import Content, references_of
from penstock.registry.names import DEFAULT_CONTEXT, beside, context_of, is_in
from penstock.registry.records import Read
from penstock.registry.terms import NO_TERM, Term
from penstock.registry.versions import KNOWN_FIELDS, Place, Schema, Version, value_of
from penstock.schemas.model import AVRO

NO_VERSIONS: Final[dict[int, Version]] = {}


class State:
    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.schemas: dict[str, dict[int, Schema]] = {}
        """By context and id."""
        self.ids: dict[str, dict[object, int]] = {}
        """By context and the mark of a content."""
        self.others_ids: dict[str, dict[object, int]] = {}
        """By context and the sorted mark, of what other registries wrote: Karapace sorts the keys of a schema, we do not."""
        self.referrers: dict[Place, set[Place]] = {}
        self.configs: dict[str | None, dict[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self.contexts: set[str] = set()
        self.max_ids: dict[str, int] = {}
        self.term: Term = NO_TERM
        self.next_offset = 0
        self.passed_over = 0
        """Records that were not understood, or contradicted earlier ones."""
        self.overwritten: dict[bytes, None] = {}
        """Keys whose last record in the topic does not count (`terms`)."""
        self._values: dict[bytes, bytes] = {}
        # Of keys other than SCHEMA: what counts, as it was written.

    def replay(self, record: Read) -> bool:
        """Whether it counts."""
        self.next_offset = record.offset + 1
        if record.term is not None and (found := terms.parse(record.term)) is not None:
            if not terms.counts(self.term, found[0]):
                if record.key is not None:
                    self.overwritten[record.key] = None
                return False
            self.term = found[0]
        if record.key is not None:
            self.overwritten.pop(record.key, None)
            self._apply(record, record.key)
        return True

    def _apply(self, record: Read, raw_key: bytes) -> None:
        key = records.read_document(raw_key)
        keytype = None if key is None else key.get("keytype")
        if key is None or not isinstance(keytype, str):
            self.passed_over += 1
            return
        data = record.value or None  # Karapace removes a schema with an empty value
        value = records.read_document(data)
        if value is None and data is not None:
            self.passed_over += 1
            return
        if keytype == records.SCHEMA:
            self._schema(key, value, record, raw_key)
            return
        subject = key.get("subject")
        if subject is not None and not isinstance(subject, str):
            self.passed_over += 1
        elif keytype == records.NOOP:
            self._noop(value)
        elif keytype == records.CONFIG:
            self._set_config(subject, value)
        elif keytype == records.MODE:
            self._set_mode(subject, value)
        elif keytype == records.CONTEXT:
            self._set_context(key.get("context"), value)
        elif keytype == records.DELETE_SUBJECT:
            self._delete_subject(value)
        elif keytype == records.CLEAR_SUBJECT:
            self._clear(subject, value)
        else:
            self.passed_over += 1
            return
        if data is None:
            self._values.pop(raw_key, None)
        else:
            self._values[raw_key] = data

    def _schema(
        self, key: Mapping[str, Any], value: dict[str, Any] | None, record: Read, raw_key: bytes
    ) -> None:
        subject, number = key.get("subject"), key.get("version")
        if not isinstance(subject, str) or not isinstance(number, int):
            self.passed_over += 1
            return
        if value is None:
            self._forget(subject, number)
            return
        version = _version(subject, number, value, record.timestamp_ms)
        if version is None or not self._may_have_its_id(version):
            self.passed_over += 1
            return
        old = self.subjects.get(subject, NO_VERSIONS).get(number)
        if raw_key != records.schema_key(subject, number):
            version.other_key = raw_key
        elif old is not None:
            version.other_key = old.other_key
        if old is not None:
            self._unlink(old)
        versions = self.subjects.setdefault(subject, {})
        if old is None and versions and number < next(reversed(versions)):
            versions[number] = version
            self.subjects[subject] = dict(sorted(versions.items()))
        else:
            versions[number] = version
        self._link(version)
        if record.term is None:
            others = self.others_ids.setdefault(context_of(subject), {})
            others.setdefault(version.content.sorted_mark, version.id)

    def _may_have_its_id(self, version: Version) -> bool:
        there = self.schemas.get(context_of(version.subject), {}).get(version.id)
        if there is None or there.content.text == version.content.text:
            return True
        return there.places.keys() == {
            version.place
        }  # it is written anew, by somebody who says it in other words

    def _link(self, version: Version) -> None:
        context = context_of(version.subject)
        schemas = self.schemas.setdefault(context, {})
        schema = schemas.get(version.id)
        if schema is None:
            schema = schemas[version.id] = Schema(version.content)
        elif schema.content.mark == version.content.mark:
            version.content = schema.content  # one copy of the text
        schema.places[version.place] = None
        self.ids.setdefault(context, {}).setdefault(version.content.mark, version.id)
        if version.id > self.max_ids.get(context, 0):
            self.max_ids[context] = version.id
        if context != DEFAULT_CONTEXT:
            self.contexts.add(context)
        for _, subject, number in version.content.references:
            place = (beside(version.subject, subject), number)
            self.referrers.setdefault(place, set()).add(version.place)

    def _unlink(self, version: Version) -> None:
        context = context_of(version.subject)
        schema = self.schemas[context].get(version.id)
        if schema is not None:
            schema.places.pop(version.place, None)
            if not schema.places:
                del self.schemas[context][version.id]
            marks = self.ids[context]
            if marks.get(version.content.mark) == version.id and not schema.places:
                del marks[version.content.mark]
            others = self.others_ids.get(context)
            if others and not schema.places:
                sorted_mark = version.content.sorted_mark
                if others.get(sorted_mark) == version.id:
                    del others[sorted_mark]
        for _, subject, number in version.content.references:
            place = (beside(version.subject, subject), number)
            referrers = self.referrers.get(place)
            if referrers is not None:
                referrers.discard(version.place)
                if not referrers:
                    del self.referrers[place]

    def _forget(self, subject: str, number: int) -> None:
        version = self.subjects.get(subject, {}).pop(number, None)
        if version is not None:
            self._unlink(version)
            if not self.subjects[subject]:
                del self.subjects[subject]

    def _delete_subject(self, value: Mapping[str, Any] | None) -> None:
        subject, highest = (value or {}).get("subject"), (value or {}).get("version")
        if isinstance(subject, str) and isinstance(highest, int):
            for version in self.subjects.get(subject, {}).values():
                if version.number <= highest:
                    version.is_deleted = True

    def _clear(self, subject: str | None, value: Mapping[str, Any] | None) -> None:
        """Soft-deleted versions of the subject, or of the context that it names, are gone."""
        if value is None:
            return
        for name in [name for name in self.subjects if is_in(subject, name)]:
            for version in list(self.subjects[name].values()):
                if version.is_deleted:
                    self._forget(name, version.number)

    def _noop(self, value: Mapping[str, Any] | None) -> None:
        highest = (value or {}).get("maxIds")
        if isinstance(highest, dict):
            for context, number in highest.items():
                if isinstance(number, int):
                    self.max_ids[context] = max(number, self.max_ids.get(context, 0))

    def _set_config(self, subject: str | None, value: dict[str, Any] | None) -> None:
        if value is None:
            self.configs.pop(subject, None)
        else:
            value.pop("subject", None)
            self.configs[subject] = value

    def _set_mode(self, subject: str | None, value: Mapping[str, Any] | None) -> None:
        name = None if value is None else value.get("mode")
        if isinstance(name, str):
            self.modes[subject] = name
        else:
            self.modes.pop(subject, None)

    def _set_context(self, context: object, value: Mapping[str, Any] | None) -> None:
        if isinstance(context, str) and context != DEFAULT_CONTEXT:
            if value is None:
                self.contexts.discard(context)
            else:
                self.contexts.add(context)

    def value_that_counts(self, key: bytes) -> bytes | None:
        """What the last record of the key should have: for one that a late record has overwritten."""
        document = records.read_document(key) or {}
        if document.get("keytype") == records.SCHEMA:
            subject, number = document.get("subject"), document.get("version")
            if not isinstance(subject, str) or not isinstance(number, int):
                return None
            version = self.subjects.get(subject, NO_VERSIONS).get(number)
            return None if version is None else value_of(version)
        return self._values.get(key)

    def versions(
        self, subject: str, *, deleted: bool = False, deleted_only: bool = False
    ) -> Iterator[Version]:
        """The lowest number first."""
        for version in self.subjects.get(subject, NO_VERSIONS).values():
            if version.is_deleted if deleted_only else deleted or not version.is_deleted:
                yield version

    def latest(self, subject: str) -> Version | None:
        return next(
            (
                each
                for each in reversed(self.subjects.get(subject, NO_VERSIONS).values())
                if not each.is_deleted
            ),
            None,
        )

    def has(self, subject: str, *, deleted: bool) -> bool:
        return next(self.versions(subject, deleted=deleted), None) is not None

    def id_of(self, context: str, content: Content) -> int | None:
        """Of a schema that is registered, in these words or in another registry's."""
        found = self.ids.get(context, {}).get(content.mark)
        if found is None and (others := self.others_ids.get(context)):
            found = others.get(content.sorted_mark)
        return found

    def next_id(self, context: str) -> int:
        return self.max_ids.get(context, 0) + 1

    def live_referrers(self, place: Place) -> Iterator[Place]:
        for subject, number in self.referrers.get(place, ()):
            if not self.subjects[subject][number].is_deleted:
                yield subject, number


def _version(subject: str, number: int, value: dict[str, Any], timestamp_ms: int) -> Version | None:
    schema_id, text = value.get("id"), value.get("schema")
    kind = value.get("schemaType") or AVRO
    try:
        references = references_of(value.get("references"))
    except ValueError:
        return None
    if not isinstance(schema_id, int) or isinstance(schema_id, bool) or schema_id < 0:
        return None
    if not isinstance(text, str) or not isinstance(kind, str):
        return None
    metadata, rule_set = value.get("metadata"), value.get("ruleSet")
    content = Content(
        kind,
        text,
        references,
        metadata if isinstance(metadata, dict) else None,
        rule_set if isinstance(rule_set, dict) else None,
    )
    more = {name: each for name, each in value.items() if name not in KNOWN_FIELDS} or None
    return Version(
        subject,
        number,
        schema_id,
        content,
        is_deleted=value.get("deleted") is True,
        timestamp_ms=timestamp_ms,
        more=more,
    )
