"""Two schemas that are compared: the form in which one comparison asks for another."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeAlias

from penstock.schemas.json_schema.differences import Findings
from penstock.schemas.json_schema.nodes import Child, Node


class Pair(NamedTuple):
    old: Node
    new: Node


Steps: TypeAlias = Generator[Pair, Findings, None]
"""A comparison: it yields the pairs that it needs, and is sent what was found in each."""


def compare_children(old: Child | None, new: Child | None, found: Findings, path: str) -> Steps:
    if old is not None and new is not None:
        found.take((yield Pair(old.node, new.node)), path)
    elif old is not None:
        found.add("SCHEMA_REMOVED", path)
    elif new is not None:
        found.add("SCHEMA_ADDED", path)


Limit: TypeAlias = Any
"""A number, or None."""


def compare_limits(name: str, keyword: str, old: Limit, new: Limit, found: Findings, path: str = "") -> None:
    """`name` as in MAX_LENGTH_ADDED, `keyword` as in maxLength. Decimals and whole numbers compare as floats do."""
    if old == new:
        return
    if old is None:
        change = "ADDED"
    elif new is None:
        change = "REMOVED"
    else:
        change = "INCREASED" if old < new else "DECREASED"
    found.add(f"{name}_{change}", f"{path}/{keyword}" if path else keyword)
