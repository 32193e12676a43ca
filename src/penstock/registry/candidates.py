"""A schema as a request brings it, to be registered, looked up or compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from penstock.registry.content import Content, Document, references_of
from penstock.registry.refusals import InvalidText, Refusal, invalid_rule_set
from penstock.schemas.model import AVRO, KINDS, SchemaReference

MAX_REFERENCES: Final = 2000
LATEST: Final = -1
NO_ID: Final = -1
_RULE_STRINGS: Final = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")


class Candidate(NamedTuple):
    kind: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    metadata: Document | None = None
    rule_set: Document | None = None
    id: int = NO_ID
    version: int = 0
    """0: not given; -1: the one behind the newest, said in the metadata."""

    @property
    def content(self) -> Content:
        return Content(self.kind, self.text, self.references, self.metadata, self.rule_set)


def candidate_of(body: Any) -> Candidate:
    """Fields that we do not know are passed over: newer clients send more."""
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object with the field schema.")
    text = body.get("schema")
    if text is not None and not isinstance(text, str):
        raise Refusal(400, "schema: must be a string; a schema that is JSON is a string in JSON.")
    kind = body.get("schemaType")
    if kind is None or kind == "":
        kind = AVRO
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidText(f"Invalid schema type {kind}")
    try:
        references = references_of(body.get("references"))
    except ValueError as error:
        raise InvalidText(f"Invalid {error}") from None
    if len(references) > MAX_REFERENCES:
        raise InvalidText(f"A schema has at most {MAX_REFERENCES} references, this one {len(references)}")
    return Candidate(
        kind,
        text or "",
        references,
        checked_metadata(_document(body, "metadata")),
        checked_rule_set(_document(body, "ruleSet")),
        _number(body, "id", NO_ID),
        _number(body, "version", 0),
    )


def _document(body: Mapping[str, Any], name: str) -> Document | None:
    found = body.get(name)
    if found is not None and not isinstance(found, dict):
        raise Refusal(400, f"{name}: must be a JSON object.")
    return found or None


def _number(body: Mapping[str, Any], name: str, default: int) -> int:
    found = body.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int) or not -1 <= found < 1 << 31:
        raise Refusal(400, f"{name}: must be a number.")
    return found


def checked_metadata(metadata: Document | None) -> Document | None:
    found = metadata or {}
    tags, properties, sensitive = (found.get(name) for name in ("tags", "properties", "sensitive"))
    if not _is_map(tags, _is_list_of_strings):
        raise Refusal(400, "metadata: tags must be lists of strings by name.")
    if not _is_map(properties, lambda value: isinstance(value, str)):
        raise Refusal(400, "metadata: properties must be strings by name.")
    if sensitive is not None and not _is_list_of_strings(sensitive):
        raise Refusal(400, "metadata: sensitive must be a list of strings.")
    return metadata


def _is_map(found: Any, is_right: Callable[[Any], bool]) -> bool:
    return found is None or (isinstance(found, dict) and all(map(is_right, found.values())))


def _is_list_of_strings(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _is_rule(rule: Any) -> bool:
    return (
        isinstance(rule, dict)
        and all(isinstance(rule.get(name), str | None) for name in _RULE_STRINGS)
        and (rule.get("tags") is None or _is_list_of_strings(rule["tags"]))
        and _is_map(rule.get("params"), lambda value: isinstance(value, str))
    )


def checked_rule_set(rule_set: Document | None) -> Document | None:
    if not isinstance((rule_set or {}).get("enableAt"), str | None):
        raise invalid_rule_set("enableAt must be a string")
    for name, rules in (rule_set or {}).items():
        if not name.endswith("Rules") or rules is None:
            continue
        if not isinstance(rules, list) or not all(map(_is_rule, rules)):
            raise invalid_rule_set(f"{name} must be a list of rules")
        names = [rule.get("name") for rule in rules]
        if not all(isinstance(each, str) and each for each in names):
            raise invalid_rule_set("Missing rule name")
        if len(set(names)) < len(names):
            raise invalid_rule_set("Found rule with duplicate name")
    return rule_set
