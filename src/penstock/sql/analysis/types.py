"""Types by name become the types that CREATE TYPE said."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import unprepared
from penstock.sql.analysis.names import nearest
from penstock.sql.parsing.statements import NamedType
from penstock.streams.plan.types import Kind, SqlType

Part = TypeVar("Part")
BUILT_IN: Final = (
    "BOOLEAN", "INT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP",
    "DECIMAL", "ARRAY", "MAP", "STRUCT",
)  # fmt: skip


def resolved_type(type_: SqlType, catalog: Catalog) -> SqlType:
    if isinstance(type_, NamedType):
        found = catalog.type(type_.name)
        if found is None:
            raise unprepared(f"Cannot resolve unknown type: {type_.name}{_meant(type_.name, catalog)}")
        return found
    if type_.kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT):
        return type_
    return replace(
        type_,
        key=None if type_.key is None else resolved_type(type_.key, catalog),
        element=None if type_.element is None else resolved_type(type_.element, catalog),
        fields=tuple((name, resolved_type(each, catalog)) for name, each in type_.fields),
    )


def _meant(name: str, catalog: Catalog) -> str:
    return nearest(name, (*catalog.type_names(), *BUILT_IN))


def resolved(statement: Part, catalog: Catalog) -> Part:
    """The statement with all its types known: of columns, of casts."""
    found: Part = _resolved(statement, catalog)
    return found


def _resolved(part: Any, catalog: Catalog) -> Any:
    if isinstance(part, SqlType):
        return resolved_type(part, catalog)
    if isinstance(part, tuple):
        if hasattr(part, "_fields"):
            return part
        new = tuple(_resolved(each, catalog) for each in part)
        return part if all(a is b for a, b in zip(new, part, strict=True)) else new
    if is_dataclass(part) and not isinstance(part, type):
        changes = {}
        for each in fields(part):
            value = getattr(part, each.name)
            new = _resolved(value, catalog)
            if new is not value:
                changes[each.name] = new
        return replace(part, **changes) if changes else part
    return part
