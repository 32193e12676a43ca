"""Which config and which mode count for a subject: its own, its context's, that of all contexts, the server's default.

`PUT /config` is that of the default context (None here); other contexts have one of their own, or the global context's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from penstock.registry.names import DEFAULT_CONTEXT, GLOBAL_SUBJECT, joined, parsed
from penstock.registry.state import State

READWRITE: Final = "READWRITE"
READONLY: Final = "READONLY"
READONLY_OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
MODES: Final = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD)
LEVEL: Final = "compatibilityLevel"


def scopes_of(subject: str | None) -> Iterator[str | None]:
    """The nearest first."""
    context = DEFAULT_CONTEXT
    if subject is not None:
        context, name = parsed(subject)
        if name:
            yield subject
    yield None if context == DEFAULT_CONTEXT else joined(context, "")
    yield GLOBAL_SUBJECT


def config_in_scope(state: State, subject: str | None, default_level: str) -> dict[str, Any]:
    """That of the nearest scope that has one. Where it says nothing of the level, the next one does."""
    found: dict[str, Any] | None = None
    level: str | None = None
    for scope in scopes_of(subject):
        config = state.configs.get(scope)
        if config is not None:
            found = config if found is None else found
            level = level or config.get(LEVEL)
    return {**(found or {}), LEVEL: level or default_level}


def mode_in_scope(state: State, subject: str | None) -> str:
    if state.modes.get(GLOBAL_SUBJECT) == READONLY_OVERRIDE or state.modes.get(None) == READONLY_OVERRIDE:
        return READONLY_OVERRIDE
    for scope in scopes_of(subject):
        mode = state.modes.get(scope)
        if mode is not None:
            return mode
    return READWRITE


def is_read_only(mode: str) -> bool:
    return mode in (READONLY, READONLY_OVERRIDE)


def takes_ids(mode: str) -> bool:
    """Whether schemas come with ids of their own."""
    return mode in (IMPORT, FORWARD)
