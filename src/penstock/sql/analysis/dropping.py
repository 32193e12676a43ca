"""DROP STREAM and DROP TABLE: whether they may."""

from __future__ import annotations

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import alternatives
from penstock.sql.parsing.statements import Drop
from penstock.streams.plan.sources import Source


def dropped(statement: Drop, catalog: Catalog) -> Source | None:
    """What goes; None: it is not there, and IF EXISTS says that this is no fault."""
    source = catalog.source(statement.name)
    if source is None:
        if statement.if_exists:
            return None
        hint = alternatives(statement.name, catalog)
        raise StatementRefused(
            f"{statement.kind.capitalize()} {statement.name} does not exist.{hint}", statement.place
        )
    if source.kind is not statement.kind:
        raise StatementRefused(
            f"Incompatible data source type is {source.kind.lower()}, but statement was DROP {statement.kind.lower()}"
        )
    if source.is_read_only and statement.delete_topic:
        raise StatementRefused(f"Cannot delete topic for read-only source: {statement.name}")
    return source
