"""The columns of a query's result: which are its key, which its values, and what must not be missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.sql.analysis.checking import known_type
from penstock.sql.analysis.flows import Flow
from penstock.sql.analysis.joining import JoinKey, foreign_keys
from penstock.sql.analysis.names import listed
from penstock.sql.analysis.projections import Projection, Selected
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import Aliased, Scope
from penstock.streams.plan.expressions import ColumnRef, Expression
from penstock.streams.plan.schema import WINDOW_BOUNDS


class Result(NamedTuple):
    """`keys` in the order of the node's key; expressions have logical names."""

    keys: tuple[Selected, ...]
    values: tuple[Selected, ...]


def persistent_result(flow: Flow, selects: Sequence[Selected]) -> Result:
    """Columns of the key leave the values; each may be there once."""
    named: dict[str, list[str]] = {}
    values: list[Selected] = []
    seen: set[str] = set()
    for each in selects:
        type_ = known_type(each.expression, flow.type_of)
        column = each.expression.name if isinstance(each.expression, ColumnRef) else None
        if column is not None and column in flow.keys:
            names = named.setdefault(column, [])
            if each.name not in names:
                names.append(each.name)
            continue
        if each.name in seen:
            raise StatementRefused(f"Duplicate value columns found in schema: `{each.name}` {type_}")
        seen.add(each.name)
        if not (column in WINDOW_BOUNDS and each.name == column):
            values.append(each)
    for column, names in named.items():
        if len(names) > 1:
            raise StatementRefused(
                f"The projection contains a key column (`{column}`) more than once, aliased as: "
                f"{listed(sorted(names), 'and')}.\nEach key column must only be in the projection once. If you intended to "
                "copy the key into the value, then consider using the AS_VALUE function to indicate which key reference "
                "should be copied."
            )
    if not values:
        raise StatementRefused("The projection contains no value columns.")
    keys = tuple(Selected(named[name][0], ColumnRef(name)) for name in flow.keys if name in named)
    return Result(keys, tuple(values))


def check_no_clash(result: Result) -> None:
    keys = [each.name for each in result.keys]
    clash = [f"`{each.name}`" for each in result.values if each.name in keys]
    clash += [f"`{name}`" for name in dict.fromkeys(keys) if keys.count(name) > 1]
    if clash:
        raise StatementRefused(f"Value columns clash with key columns: {', '.join(clash)}")


# ------------------------------------------------------------------------------------------------ keys that must be there


def missing_keys(
    sink: str, kind: str, required: Sequence[str], *, all_of: bool = True, synthetic: bool = False
) -> StatementRefused:
    plural = "s" if all_of and len(required) > 1 else ""
    kinds = kind if len(required) == 1 else f"{kind}s"
    example = ", ".join(required) if all_of else required[0]
    hint = "See https://cnfl.io/2LV7ouS." if synthetic else ""
    ending = (
        f"\n{required[0]} was added as a synthetic key column because the join criteria did not match any source column. "
        "This expression must be included in the projection and may be aliased. "
        if synthetic
        else ""
    )
    return StatementRefused(
        f"Key{plural} missing from projection (ie, SELECT). {hint}\nThe query used to build `{sink}` must include the {kinds} "
        f"{listed(required, 'and' if all_of else 'or')} in its projection (eg, SELECT {example}...).{ending}"
    )


def check_source_keys(source: Aliased, projection: Projection, sink: str) -> None:
    keys = [each.name for each in source.source.schema.key]
    if not all(projection.contains(ColumnRef(name, source.alias)) for name in keys):
        raise missing_keys(sink, "key column", keys)


def check_partition_keys(partition_by: Sequence[Expression], projection: Projection, sink: str) -> None:
    if not all(projection.contains(each) for each in partition_by):
        raise missing_keys(sink, "partitioning expression", [str(each) for each in partition_by])


def check_join_key(key: JoinKey, projection: Projection, scope: Scope, sink: str) -> None:
    if key.foreign_left is not None:
        missing = [f"`{each.name}`" for each in foreign_keys(key) if not projection.contains(each)]
        if missing:
            columns = "column" if len(missing) == 1 else "columns"
            raise StatementRefused(
                f"Primary key {columns} missing in projection. For foreign-key table-table joins, the projection must include "
                f"all primary key columns from the left input table (`{key.foreign_left.alias}`). "
                f"Missing {columns}: {', '.join(missing)}."
            )
        return
    if key.is_synthetic:
        if not projection.contains(ColumnRef(key.names[0])):
            raise missing_keys(sink, "join expression", list(key.names), all_of=False, synthetic=True)
        return
    logical = [ColumnRef(scope.name_of(each)) for each in key.columns]
    if not any(projection.contains(each) for each in (*key.columns, *logical)):
        raise missing_keys(sink, "join expression", [str(each) for each in key.columns], all_of=False)
