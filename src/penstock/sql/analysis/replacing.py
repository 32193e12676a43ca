"""Which source may take the place of another: CREATE OR REPLACE, ALTER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.types import resolved
from penstock.sql.parsing.statements import AlterSource
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Source


def check_replaces(old: Source, new: Source) -> None:
    """Columns may come at the end; all else stays as it is."""
    problems = [
        f"DataSource '`{old.name}`' has {what} = {before} which is not upgradeable to {after}"
        for what, before, after in (
            ("name", f"`{old.name}`", f"`{new.name}`"),
            ("type", f"K{old.kind}", f"K{new.kind}"),
            ("topic", old.topic, new.topic),
            ("key format", old.formats.key.name, new.formats.key.name),
            ("value format", old.formats.value.name, new.formats.value.name),
            ("windowing", old.window and old.window.kind, new.window and new.window.kind),
        )
        if before != after
    ]
    difference = _difference(old.schema, new.schema)
    if difference:
        problems.append(
            f"DataSource '`{old.name}`' has schema = {old.schema} which is not upgradeable to {new.schema}. ({difference})"
        )
    if problems:
        raise StatementRefused("Cannot upgrade data source: " + "\n\tAND ".join(problems))


def _difference(old: Schema, new: Schema) -> str | None:
    if old.key != new.key:
        changed = _changed(old.key, new.key)
        return f"Key columns must be identical. The following key columns are changed, missing or reordered: {changed}"
    if new.value[: len(old.value)] != old.value:
        return f"The following columns are changed, missing or reordered: {_changed(old.value, new.value)}"
    return None


def _changed(old: Sequence[Column], new: Sequence[Column]) -> str:
    found = [each for at, each in enumerate(old) if at >= len(new) or new[at] != each]
    return "[" + ", ".join(f"`{each.name}` {each.type}" for each in found) + "]"


def altered(statement: AlterSource, catalog: Catalog) -> Source:
    """The source with its new columns."""
    statement = resolved(statement, catalog)
    source = catalog.source(statement.name)
    if source is None:
        raise StatementRefused(f"Source {statement.name} does not exist.")
    if source.kind is not statement.kind:
        raise StatementRefused(
            f"Incompatible data source type is {source.kind}, but statement was ALTER {statement.kind}"
        )
    kind = source.kind.lower()
    if source.query_id is not None:
        raise StatementRefused(
            f"ALTER command is not supported for CREATE ... AS statements. Source: {statement.name}."
        )
    if source.is_read_only:
        raise StatementRefused(
            f"Cannot alter {kind} '{statement.name}': ALTER operations are not supported on source {kind}s."
        )
    taken = {column.name for column in (*source.schema.key, *source.schema.value)}
    for name, _ in statement.columns:
        if name in taken:
            raise StatementRefused(
                f"Cannot add column `{name}` to schema. A column with the same name already exists."
            )
        taken.add(name)
    value = (*source.schema.value, *(Column(name, type_) for name, type_ in statement.columns))
    return replace(source, schema=replace(source.schema, value=value))
