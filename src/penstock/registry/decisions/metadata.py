"""Metadata and rules that a new version gets beside its own: the config's defaults, those of the version before, overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.registry.candidates import Candidate
from penstock.registry.content import Content, Document

CONFLUENT_VERSION = "confluent:version"
_SETS = ("tags", "properties", "sensitive")


def populated(
    candidate: Candidate, previous: Content | None, config: Mapping[str, Any], new_version: int | None
) -> Candidate:
    """A request that says nothing of metadata means those of the newest version. `new_version` None: it is a look-up."""
    own_metadata = candidate.metadata or (previous.metadata if previous else None)
    own_rules = candidate.rule_set or (previous.rule_set if previous else None)
    metadata = _merged_metadata(
        _merged_metadata(config.get("defaultMetadata"), own_metadata), config.get("overrideMetadata")
    )
    rules = _merged_rules(
        _merged_rules(config.get("defaultRuleSet"), own_rules), config.get("overrideRuleSet")
    )
    has_version = bool(((metadata or {}).get("properties") or {}).get(CONFLUENT_VERSION))
    if new_version is not None and (candidate.version != 0 or has_version):
        properties = {**((metadata or {}).get("properties") or {}), CONFLUENT_VERSION: str(new_version)}
        metadata = {**(metadata or {}), "properties": properties}
    return candidate._replace(metadata=metadata, rule_set=rules)


def has_defaults(config: Mapping[str, Any]) -> bool:
    return any(
        config.get(name)
        for name in ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
    )


def _merged_metadata(older: Document | None, newer: Document | None) -> Document | None:
    if not older or not newer:
        return newer or older or None
    merged: dict[str, Any] = {**older, **newer}
    for name in _SETS:
        first, second = older.get(name), newer.get(name)
        if isinstance(first, dict) and isinstance(second, dict):
            merged[name] = {**first, **second}
        elif isinstance(first, list) and isinstance(second, list):
            merged[name] = list(dict.fromkeys([*first, *second]))
    return merged


def _merged_rules(older: Document | None, newer: Document | None) -> Document | None:
    """A rule takes the place of the one with its name."""
    if not older or not newer:
        return newer or older or None
    merged: dict[str, Any] = {**older, **newer}
    for name in merged:
        first, second = older.get(name), newer.get(name)
        if isinstance(first, list) and isinstance(second, list):
            names = {rule.get("name") for rule in second}
            merged[name] = [rule for rule in first if rule.get("name") not in names] + second
    return merged
