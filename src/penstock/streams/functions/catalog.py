"""All scalar functions by name."""

from __future__ import annotations

from penstock.streams.functions.library import LOADED
from penstock.streams.functions.registry import SCALARS, ScalarFunction
from penstock.streams.functions.scope import added, added_names

__all__ = ["LOADED", "find", "names"]


def find(name: str) -> ScalarFunction | None:
    return SCALARS.get(name.upper()) or added(name.upper(), ScalarFunction)


def names() -> list[str]:
    return sorted([*SCALARS, *added_names(ScalarFunction)])
