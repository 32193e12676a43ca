"""A function as CREATE FUNCTION says it, and what SQL calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.functions.hosts import HOSTS
from penstock.sql.functions.programs import parts
from penstock.sql.functions.results import as_declared
from penstock.sql.parsing.statements import CreateFunction
from penstock.streams.functions.aggregates import Aggregate, AggregateFunction, AggregateOverload
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import Overload, ScalarFunction
from penstock.streams.functions.signatures import Parameter, ParameterType, Signature
from penstock.streams.functions.tables import TableFunction, TableOverload
from penstock.streams.kernel.operators.user_aggregates import ProgramFailed
from penstock.streams.plan.types import SqlType

CATEGORY: Final = "USER"
LANGUAGE: Final = "PYTHON"


@dataclass(frozen=True)
class Definition:
    """`streams.functions.scope.AddedFunction`. It goes to other processes with the plans that call it."""

    name: str
    kind: str
    """SCALAR, AGGREGATE or TABLE."""
    parameters: tuple[tuple[str, SqlType], ...]
    returns: SqlType
    source: str
    timeout_ms: int
    parts: tuple[str, ...] = ()
    """The functions of an aggregate's program."""

    def declared(self) -> ScalarFunction | AggregateFunction | TableFunction:
        return _declared(self)

    def check(self) -> None:
        """StatementRefused where the program cannot be loaded. That runs what stands outside its functions."""
        try:
            self.called("")
        except FunctionFailed as failed:
            raise StatementRefused(str(failed)) from None

    def called(self, function: str, *arguments: Any) -> Any:
        """FunctionFailed."""
        names = tuple(name.lower() for name, _ in self.parameters)
        about = (self.kind, self.name, names, self.source)
        return HOSTS.call(self.name, about, function, arguments, self.timeout_ms)

    def scalar(self, *arguments: Any) -> Any:
        return self._declared_value(self.called("call", *arguments))

    def table(self, *arguments: Any) -> list[Any]:
        rows = self.called("call", *arguments)
        return [self._declared_value(each) for each in rows or ()]

    def _declared_value(self, value: Any) -> Any:
        try:
            return as_declared(value, self.returns)
        except FunctionFailed as failed:
            raise FunctionFailed(f"The function {self.name} has failed: {failed}") from None

    def aggregated(self, function: str, *arguments: Any) -> Any:
        """ProgramFailed: then the row is left out."""
        try:
            if function == "result":
                state = self.called("result", *arguments) if "result" in self.parts else arguments[0]
                return self._declared_value(state)
            if function not in self.parts:
                raise FunctionFailed(f"The aggregate {self.name} has no {function}, which this query needs")
            return self.called(function, *arguments)
        except FunctionFailed as failed:
            raise ProgramFailed(str(failed)) from failed


def definition_of(statement: CreateFunction, timeout_ms: int) -> Definition:
    """StatementRefused. `statement` has its types resolved."""
    if statement.language.upper() != LANGUAGE:
        raise StatementRefused(f"Functions are written in {LANGUAGE}, and not in {statement.language}.")
    names = [name.lower() for name, _ in statement.parameters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StatementRefused(
            f"The function {statement.name} has two parameters with the name {twice.upper()}."
        )
    wrong = next((name for name in names if not name.isidentifier()), None)
    if wrong is not None:
        raise StatementRefused(
            f"The parameter {wrong} of the function {statement.name} cannot be a name in Python."
        )
    if statement.kind != "SCALAR" and not names:
        raise StatementRefused(
            f"The function {statement.name} needs a parameter, because it is no scalar one."
        )
    found = parts(statement.kind, statement.name, names, statement.source)
    return Definition(
        statement.name,
        statement.kind,
        statement.parameters,
        statement.returns,
        statement.source,
        timeout_ms,
        found,
    )


@lru_cache(maxsize=1000)
def _declared(of: Definition) -> ScalarFunction | AggregateFunction | TableFunction:
    signature = Signature(
        tuple(Parameter(_parameter(type_), name) for name, type_ in of.parameters), _parameter(of.returns)
    )
    about = f"In Python, by CREATE FUNCTION {of.name}"
    match of.kind:
        case "SCALAR":
            overload = Overload(signature, of.scalar, about, is_strict=False, result=lambda _: of.returns)
            return ScalarFunction(of.name, CATEGORY, about, [overload])
        case "TABLE":
            return TableFunction(of.name, about, [TableOverload(signature, of.table, of.returns)])
        case _:
            made = AggregateOverload(
                signature, lambda _: _aggregate(of), 0, lambda _: of.returns, None, about
            )
            return AggregateFunction(of.name, about, "remove" in of.parts, [made])


def _aggregate(of: Definition) -> Aggregate:
    return Aggregate(
        of.called("initial") if "initial" in of.parts else None,
        lambda state, *values: of.aggregated("add", state, *values),
        lambda one, other: of.aggregated("merge", one, other),
        lambda state, *values: of.aggregated("remove", state, *values),
        lambda state: of.aggregated("result", state),
    )


def _parameter(type_: SqlType) -> ParameterType:
    if type_.fields:
        names, types = zip(*type_.fields, strict=True)
        return ParameterType(type_.kind.value, tuple(_parameter(each) for each in types), tuple(names))
    inner = tuple(_parameter(each) for each in (type_.key, type_.element) if each is not None)
    return ParameterType(type_.kind.value, inner)
