"""With which versions a new schema of a subject is compared, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.registry.candidates import Candidate
from penstock.registry.content import Content
from penstock.registry.scope import LEVEL
from penstock.registry.versions import Version
from penstock.schemas.compatibility import LENIENT, NONE, STRICT, TRANSITIVE


def compared_with(
    candidate: Candidate, versions: Iterable[Version], config: Mapping[str, Any]
) -> list[Version]:
    """The newest first; only those that can decide."""
    level = config[LEVEL]
    if level == NONE:
        return []
    group = config.get("compatibilityGroup")
    wanted = [
        version
        for version in versions
        if not group or _in_group(version.content, group) == _in_group(candidate.content, group)
    ]
    wanted.reverse()
    return wanted if level.endswith(TRANSITIVE) else wanted[:1]


def policy_of(config: Mapping[str, Any]) -> str:
    return LENIENT if config.get("compatibilityPolicy") == LENIENT else STRICT


def _in_group(content: Content, group: str) -> object:
    properties = (content.metadata or {}).get("properties")
    return properties.get(group) if isinstance(properties, dict) else None
