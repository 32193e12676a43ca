"""Schemas of subjects, and how new versions must go with older ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from penstock.client.errors import Refused
from penstock.client.schema_registry import RegistryRefused, SchemaRegistry
from penstock.stack.contents.outcome import Outcome
from penstock.stack.description.model import SchemaWish

NO_SUBJECT, NO_SCHEMA, NO_LEVEL = 40401, 40403, 40408


class Registry(SchemaRegistry):
    """With what only administration asks for."""

    def compatibility(self, subject: str) -> str | None:
        """The subject's own; None where it has none."""
        try:
            found = self.ask("GET", f"/config/{quote(subject, safe='')}")
        except RegistryRefused as error:
            if error.code in (NO_SUBJECT, NO_LEVEL) or error.status == 404:
                return None
            raise
        return str(found.get("compatibilityLevel") or found.get("compatibility") or "") or None

    def set_compatibility(self, subject: str, level: str) -> None:
        self.ask("PUT", f"/config/{quote(subject, safe='')}", {"compatibility": level})

    def has(self, wish: SchemaWish) -> bool:
        try:
            self.lookup(wish.subject, wish.text, wish.kind, wish.references)
        except RegistryRefused as error:
            if error.code in (NO_SUBJECT, NO_SCHEMA):
                return False
            raise
        return True


def apply_schemas(
    registry: Registry, schemas: Sequence[SchemaWish], file: Path, outcome: Outcome, *, check: bool = False
) -> None:
    """In the order of the file: what others refer to stands before them. Unreachable."""
    subjects = set(registry.subjects()) if schemas else set()
    for wish in schemas:
        try:
            _apply(registry, wish, outcome, is_new=wish.subject not in subjects, check=check)
        except Refused as error:
            outcome.say_failed(f"{file}:{wish.line}: schema {wish.subject}: {error}")


def _apply(registry: Registry, wish: SchemaWish, outcome: Outcome, *, is_new: bool, check: bool) -> None:
    is_as_wished = True
    level = registry.compatibility(wish.subject) if wish.compatibility is not None else None
    if wish.compatibility is not None and level != wish.compatibility:
        if not check:
            registry.set_compatibility(wish.subject, wish.compatibility)
        was = f" ({level} before)" if level is not None else ""
        outcome.say_done(
            f"schema {wish.subject} {'would be' if check else 'is'} {wish.compatibility} now{was}"
        )
        is_as_wished = False
    if is_new or not registry.has(wish):
        if check:
            outcome.say_done(
                f"schema {wish.subject} would be registered{'' if is_new else ', as a new version'}"
            )
            return
        number = registry.register(wish.subject, wish.text, wish.kind, wish.references)
        how = "was registered" if is_new else "has a new version"
        outcome.say_done(f"schema {wish.subject} {how} (id {number})")
    elif is_as_wished:
        outcome.as_wished += 1
