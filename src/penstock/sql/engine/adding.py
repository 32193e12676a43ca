"""CREATE FUNCTION: whether the server allows it, and what it makes."""

from __future__ import annotations

from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.types import resolved
from penstock.sql.functions.definition import Definition, definition_of
from penstock.sql.parsing.statements import CreateFunction
from penstock.streams.functions import descriptions

ENABLED: Final = "penstock.sql.functions.enabled"
TIMEOUT_MS: Final = "penstock.sql.functions.timeout.ms"


def created(statement: CreateFunction, catalog: Catalog) -> Definition:
    """The same at the server that takes the statement and at those that read it from the log. StatementRefused."""
    if catalog.property(ENABLED) != "true":
        raise StatementRefused(
            f"This server runs no functions of users, and does not take {statement.name}. "
            f"Who may write statements could then run any program here; to allow it: {ENABLED}=true"
        )
    known = descriptions.describe(statement.name)
    if known is not None and known.category != "USER" and not known.about.startswith("In Python"):
        raise StatementRefused(f"{statement.name} is a built-in function, which cannot be replaced.")
    return definition_of(resolved(statement, catalog), int(catalog.property(TIMEOUT_MS) or 1000))
