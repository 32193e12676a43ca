"""Functions about NULL, and those that only hand values on."""

from __future__ import annotations

from typing import Any

from penstock.streams.functions.registry import scalar


@scalar(
    "COALESCE",
    "T first, T... rest -> T",
    about="Returns first non-null element",
    nulls="own",
    category="CONDITIONAL",
)
def coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


@scalar(
    "IFNULL",
    "T expression, T altValue -> T",
    about="Returns expression if not NULL, otherwise the alternative value",
    nulls="own",
    category="CONDITIONAL",
)
def ifnull(value: Any, alternative: Any) -> Any:
    return alternative if value is None else value


@scalar(
    "NULLIF",
    "T expression1, T expression2 -> T",
    about="Returns NULL if two expressions are equal, otherwise returns the first expression",
    nulls="own",
    category="CONDITIONAL",
)
def nullif(value: Any, other: Any) -> Any:
    return None if value == other else value


@scalar(
    "AS_VALUE",
    "T keyColumn -> T",
    about="Used exclusively in the projection of a query to allow a key column to be copied into the value schema.",
    nulls="own",
)
def as_value(value: Any) -> Any:
    return value
