"""Which topics, groups and configs a flow is about: lists of names and patterns, whole names in Java's form. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.connect.errors import InvalidConfig
from penstock.connect.transforms.java_patterns import JavaPattern, java_pattern


class Filter:
    """`wanted` lets through, `excluded` wins over it."""

    def __init__(self, wanted: Iterable[str], excluded: Iterable[str], name: str) -> None:
        """InvalidConfig, which names the setting."""
        self._wanted = _patterns(wanted, name)
        self._excluded = _patterns(excluded, f"{name}.exclude")

    def passes(self, name: str) -> bool:
        return any(one.is_full_match(name) for one in self._wanted) and not any(
            one.is_full_match(name) for one in self._excluded
        )


def _patterns(given: Iterable[str], name: str) -> list[JavaPattern]:
    found = []
    for text in given:
        try:
            found.append(java_pattern(text))
        except ValueError as error:
            raise InvalidConfig(f"{name}: {text} is not a pattern: {error}") from None
    return found
