"""How a scalar function is declared: a Python function, and the signatures it has in SQL.

    @scalar("ABS", "INTEGER val -> INTEGER", "BIGINT val -> BIGINT", about="…")
    def abs_(value): …

With `nulls="strict"` (the default) any NULL argument gives NULL and the function is not called; with `nulls="own"` it is
called with None. A function that depends on the types of its arguments is declared with `bound=True`: it is called once, when a
statement is compiled, with those types and the result's, and gives the function that is called for rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from penstock.streams.functions.overloads import choose
from penstock.streams.functions.signatures import Argument, Signature, applied, generics_of, parse
from penstock.streams.plan.types import SqlType

Result = Callable[[tuple[Argument, ...]], SqlType]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Overload:
    signature: Signature
    run: Callable[..., Any]
    about: str = ""
    is_strict: bool = True
    is_bound: bool = False
    result: Result | None = None  # where the signature does not say it all: DECIMAL, STRUCT

    def type_for(self, arguments: tuple[Argument, ...]) -> SqlType:
        if self.result is not None:
            return self.result(arguments)
        return applied(self.signature.result, generics_of(self.signature, arguments))

    def function_for(self, arguments: tuple[Argument, ...], result: SqlType) -> Callable[..., Any]:
        return self.run(arguments, result) if self.is_bound else self.run


@dataclass(slots=True)
class ScalarFunction:
    name: str
    category: str
    about: str
    overloads: list[Overload] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """As messages and DESCRIBE FUNCTION have it."""
        return shown_name(self.name)

    def choose(self, arguments: tuple[Argument, ...]) -> Overload:
        return choose(self.shown, self.overloads, lambda each: each.signature, arguments)


_CAPITALS: Final = frozenset(
    {
        "ARRAY_CONTAINS",
        "ARRAY_JOIN",
        "ARRAY_LENGTH",
        "AS_MAP",
        "AS_VALUE",
        "ATTR",
        "COALESCE",
        "COUNT",
        "COUNT_DISTINCT",
        "EARLIEST_BY_OFFSET",
        "ENTRIES",
        "GENERATE_SERIES",
        "IFNULL",
        "IS_JSON_STRING",
        "JSON_ARRAY_CONTAINS",
        "JSON_ARRAY_LENGTH",
        "JSON_CONCAT",
        "JSON_ITEMS",
        "JSON_KEYS",
        "JSON_RECORDS",
        "LATEST_BY_OFFSET",
        "MAX",
        "MIN",
        "NULLIF",
        "STDDEV_SAMP",
        "STDDEV_SAMPLE",
        "SUM",
        "TOPK",
        "TOPKDISTINCT",
        "TO_JSON_STRING",
        "UUID",
    }
)
_MIXED: Final = {each.upper(): each for each in ("Abs", "Ceil", "Chr", "Floor", "LPad", "RPad", "Round")}


def shown_name(name: str) -> str:
    return name if name in _CAPITALS else _MIXED.get(name, name.lower())


SCALARS: Final[dict[str, ScalarFunction]] = {}


def scalar(
    name: str,
    *signatures: str,
    about: str = "",
    category: str = "OTHER",
    nulls: str = "strict",
    bound: bool = False,
    result: Result | None = None,
) -> Callable[[Function], Function]:
    def declare(run: Function) -> Function:
        found = SCALARS.setdefault(name, ScalarFunction(name, category, about))
        if about and not found.about:
            found.about, found.category = about, category
        for each in signatures:
            found.overloads.append(
                Overload(
                    parse(each),
                    run,
                    about=about,
                    is_strict=nulls == "strict",
                    is_bound=bound,
                    result=result,
                )
            )
        return run

    return declare


def same_as_first(arguments: tuple[Argument, ...]) -> SqlType:
    """The result is of the first argument's type, with its precision and scale."""
    first = arguments[0]
    assert isinstance(first, SqlType)
    return first
