"""What a version says, apart from where it is registered: the text, its kind, what it refers to, metadata and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from penstock.schemas.fingerprints import guid_of
from penstock.schemas.model import AVRO, PROTOBUF, SchemaReference

Document = Mapping[str, Any]


class Content:
    """Equal contents have equal marks. References name subjects as the request or the record did."""

    __slots__ = ("kind", "mark", "metadata", "references", "rule_set", "text")

    def __init__(
        self,
        kind: str,
        text: str,
        references: Sequence[SchemaReference] = (),
        metadata: Document | None = None,
        rule_set: Document | None = None,
    ) -> None:
        self.kind = kind
        self.text = text
        self.references = tuple(references)
        self.metadata = metadata or None
        self.rule_set = rule_set or None
        self.mark = (kind, text, self.references, _bare(self.metadata), _bare(self.rule_set))

    @property
    def guid(self) -> str:
        try:
            return guid_of(self.text, self.references, self.metadata, self.rule_set)
        except (AttributeError, TypeError):  # metadata that no request could have brought, in a record
            return guid_of(self.text, self.references)

    @property
    def sorted_mark(self) -> object:
        """The same for texts in JSON that differ in the order of their keys and in spaces only."""
        if self.kind == PROTOBUF:
            return self.mark
        try:
            text = orjson.dumps(orjson.loads(self.text), option=orjson.OPT_SORT_KEYS)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            return self.mark
        return (self.kind, blake2b(text, digest_size=16).digest(), *self.mark[2:])

    @property
    def confluent_version(self) -> str | None:
        found = (self.metadata or {}).get("properties")
        return found.get("confluent:version") if isinstance(found, dict) else None

    def document(self) -> dict[str, Any]:
        """The fields that answers and records have; the default kind is left out."""
        found: dict[str, Any] = {}
        if self.kind != AVRO:
            found["schemaType"] = self.kind
        if self.references:
            found["references"] = [each._asdict() for each in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set
        found["schema"] = self.text
        return found


def _bare(document: Document | None) -> bytes | None:
    return None if document is None else orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def references_of(given: Any) -> tuple[SchemaReference, ...]:
    """ValueError for what is no list of references."""
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ValueError("references: must be a list")
    found = []
    for each in given:
        if not isinstance(each, dict):
            raise ValueError("references: each has a name, a subject and a version")
        name, subject, version = each.get("name"), each.get("subject"), each.get("version")
        if (
            not isinstance(name, str)
            or not isinstance(subject, str)
            or not isinstance(version, int)
            or isinstance(version, bool)
            or not -1 <= version < 1 << 31
        ):
            raise ValueError("references: each has a name, a subject and a version")
        found.append(SchemaReference(name, subject, version))
    return tuple(found)
