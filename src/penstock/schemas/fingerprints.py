"""Ids that are made from what a schema says, as Confluent's registry makes them.

The MD5 digest is that of the text, then of each reference (name, subject, version as four bytes), then, if they are there, of
the metadata and of the rules, each after a byte 1. Nothing stands between the parts. The kind of the schema is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.schemas.model import SchemaReference

_THERE: Final = b"\x01"
_RULES: Final = ("migrationRules", "domainRules", "encodingRules")


def md5_of(
    text: str,
    references: Sequence[SchemaReference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> bytes:
    """By which Confluent's registry knows a schema. `metadata` and `rule_set` as in the JSON of its requests."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False)
    for name, subject, version in references:
        digest.update(name.encode() + subject.encode() + version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(_THERE)
        for part in _metadata(metadata):
            digest.update(part.encode())
    if rule_set is not None:
        digest.update(_THERE)
        for kind in _RULES:
            for rule in rule_set.get(kind) or ():
                digest.update(b"".join(_rule(rule)))
        digest.update((rule_set.get("enableAt") or "").encode())
    return digest.digest()


def md5_text(
    text: str,
    references: Sequence[SchemaReference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> str:
    """As records of `_schemas` have it."""
    return base64.b64encode(md5_of(text, references, metadata, rule_set)).decode()


def guid_of(
    text: str,
    references: Sequence[SchemaReference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> str:
    """The same in every registry for the same schema."""
    return str(uuid.UUID(bytes=md5_of(text, references, metadata, rule_set)))


def _metadata(said: Mapping[str, Any]) -> Iterator[str]:
    for name, tags in _sorted(said.get("tags")):
        yield name
        yield from sorted(set(tags or ()), key=_java_order)
    for name, value in _sorted(said.get("properties")):
        yield name + value
    yield from sorted(set(said.get("sensitive") or ()), key=_java_order)


def _rule(said: Mapping[str, Any]) -> Iterator[bytes]:
    named = {"kind": "TRANSFORM", "mode": "WRITEREAD"}  # when the rule does not say
    for name in ("name", "doc", "kind", "mode", "type"):
        yield (said.get(name) or named.get(name, "")).encode()
    for tag in sorted(set(said.get("tags") or ()), key=_java_order):
        yield tag.encode()
    for name, value in _sorted(said.get("params")):
        yield name.encode() + value.encode()
    for name in ("expr", "onSuccess", "onFailure"):
        yield (said.get(name) or "").encode()
    if said.get("disabled"):
        yield _THERE


def _sorted(said: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    return sorted((said or {}).items(), key=lambda each: _java_order(each[0]))


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
