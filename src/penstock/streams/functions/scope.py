"""Functions that somebody has added to the built-in ones, for as long as a statement is analysed or a plan is built.

    with in_scope(plan.functions):
        ...  # catalog.find, aggregates.find and tables.find know them

A plan takes its own along (`Plan.functions`), so it means the same in a worker, and after the function has been replaced. The
scope is one of a thread or coroutine: nothing of it is seen by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

Kind = TypeVar("Kind")


class AddedFunction(Protocol):
    @property
    def name(self) -> str:
        """In upper case."""

    def declared(self) -> Any:
        """A `registry.ScalarFunction`, `aggregates.AggregateFunction` or `tables.TableFunction`."""


_added: Final[ContextVar[Mapping[str, AddedFunction]]] = ContextVar(
    "penstock_functions", default=MappingProxyType({})
)


@contextmanager
def in_scope(functions: Iterable[AddedFunction]) -> Iterator[None]:
    """Beside those that are in scope already."""
    token = _added.set({**_added.get(), **{each.name: each for each in functions}})
    try:
        yield
    finally:
        _added.reset(token)


def added(name: str, kind: type[Kind]) -> Kind | None:
    found = _added.get().get(name)
    declared = None if found is None else found.declared()
    return declared if isinstance(declared, kind) else None


def added_names(kind: type[Kind]) -> list[str]:
    return [name for name in _added.get() if added(name, kind) is not None]


def added_functions() -> tuple[AddedFunction, ...]:
    return tuple(_added.get().values())
