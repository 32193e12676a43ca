"""What a function takes and gives, written as text: `"ARRAY<T> items, T... more -> ARRAY<T>"`.

A name that is no SQL type is a generic: it stands for one type throughout a signature. `T...` may stand any number of times.
`LAMBDA (T, U) => R` is a lambda, `UNIT` the unit of DATEADD and the like, `ANY` whatever comes. DECIMAL has no precision here:
a function that gives one says which (`registry.Overload.result`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.plan import types as t
from penstock.streams.plan.types import Kind, SqlType

_PLAIN: Final = {
    **{name: SqlType(Kind(name)) for name in ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "STRING")},
    **{name: SqlType(Kind(name)) for name in ("BYTES", "TIME", "DATE", "TIMESTAMP")},
}
_SHOWN: Final = {"INTEGER": "INT", "STRING": "VARCHAR", "UNIT": "INTERVAL UNIT"}
_NUMBERS: Final = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")


@dataclass(frozen=True, slots=True)
class ParameterType:
    """`name` is a SQL type's, ANY, UNIT, LAMBDA, or a generic's. Of LAMBDA, `inner` is what goes in and then what comes out."""

    name: str
    inner: tuple[ParameterType, ...] = ()
    fields: tuple[str, ...] = ()  # of STRUCT, in the order of `inner`

    @property
    def is_generic(self) -> bool:
        return not self.inner and self.name not in _SQL_NAMES

    @property
    def has_generics(self) -> bool:
        return self.is_generic or any(each.has_generics for each in self.inner)

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        match self.name:
            case "ARRAY" | "MAP":
                return f"{shown}<{', '.join(map(str, self.inner))}>"
            case "STRUCT":
                return (
                    f"STRUCT<{', '.join(f'{n} {i}' for n, i in zip(self.fields, self.inner, strict=True))}>"
                )
            case "LAMBDA":
                return f"LAMBDA ({', '.join(map(str, self.inner[:-1]))}) => {self.inner[-1]}"
            case _:
                return shown


_SQL_NAMES: Final = {*_PLAIN, "DECIMAL", "ARRAY", "MAP", "STRUCT", "ANY", "UNIT", "LAMBDA"}


@dataclass(frozen=True, slots=True)
class Parameter:
    type: ParameterType
    name: str = ""
    is_variadic: bool = False

    def __str__(self) -> str:
        return f"{self.type}{'...' if self.is_variadic else ''}{' ' + self.name if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: tuple[Parameter, ...]
    result: ParameterType

    @property
    def variadic_at(self) -> int:
        return next((at for at, each in enumerate(self.parameters) if each.is_variadic), -1)

    def for_count(self, count: int) -> tuple[Parameter, ...] | None:
        """One parameter for each of `count` arguments; None when so many do not fit."""
        at = self.variadic_at
        if at < 0:
            return self.parameters if len(self.parameters) == count else None
        times = count - len(self.parameters) + 1
        if times < 0:
            return None
        return (*self.parameters[:at], *[self.parameters[at]] * times, *self.parameters[at + 1 :])


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda before its types are known (`inputs` None), and after."""

    count: int
    inputs: tuple[SqlType, ...] | None = None
    result: SqlType | None = None

    def __str__(self) -> str:
        return "LAMBDA"


@dataclass(frozen=True, slots=True)
class UnitArgument:
    def __str__(self) -> str:
        return "INTERVAL UNIT"


Argument = SqlType | LambdaArgument | UnitArgument | None
"""The type of an argument; None is NULL's."""

_TOKEN: Final = re.compile(r"\s*(=>|->|\.\.\.|[A-Za-z_][A-Za-z_0-9]*|[(),<>])")


def parse(text: str) -> Signature:
    tokens = [match.group(1) for match in _TOKEN.finditer(text)] + [""]
    parameters: list[Parameter] = []
    while tokens[0] != "->":
        type_ = _parse_type(tokens)
        variadic = tokens[0] == "..."
        if variadic:
            tokens.pop(0)
        name = tokens.pop(0) if tokens[0] not in (",", "->") else ""
        parameters.append(Parameter(type_, name, variadic))
        if tokens[0] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return Signature(tuple(parameters), _parse_type(tokens))


def _parse_type(tokens: list[str]) -> ParameterType:
    name = tokens.pop(0)
    inner: list[ParameterType] = []
    fields: list[str] = []
    if tokens[0] == "<":
        while tokens.pop(0) != ">":
            if name == "STRUCT":
                fields.append(tokens.pop(0))
            inner.append(_parse_type(tokens))
    elif name == "LAMBDA":
        while tokens.pop(0) != ")":
            inner.append(_parse_type(tokens))
        tokens.pop(0)
        inner.append(_parse_type(tokens))
    return ParameterType(name, tuple(inner), tuple(fields))


def is_implicit(kind: Kind, wanted: str) -> bool:
    """Whether a value of `kind` is taken where a parameter of the type `wanted` stands."""
    name = kind.value
    if name == wanted:
        return True
    if name in _NUMBERS and wanted in _NUMBERS:
        return _NUMBERS.index(name) <= _NUMBERS.index(wanted)
    return kind is Kind.STRING and wanted in ("TIME", "DATE", "TIMESTAMP", "BYTES")


def accepts(
    wanted: ParameterType, given: Argument, generics: dict[str, SqlType], *, with_casts: bool
) -> bool:
    """Whether an argument fits; `generics` learns what its names stand for."""
    if given is None or (isinstance(given, UnitArgument) and wanted.name == "UNIT"):
        return True
    if isinstance(given, UnitArgument) or wanted.name == "UNIT":
        return wanted.name == "ANY"
    if wanted.has_generics:
        return learn(wanted, given, generics) is None
    return _is_compatible(wanted, given, with_casts)


def _is_compatible(wanted: ParameterType, given: SqlType | LambdaArgument, with_casts: bool) -> bool:
    if wanted.name == "ANY":
        return True
    if isinstance(given, LambdaArgument) or wanted.name == "LAMBDA":
        return (
            isinstance(given, LambdaArgument)
            and wanted.name == "LAMBDA"
            and given.count == len(wanted.inner) - 1
        )
    match given.kind, wanted.name:
        case (Kind.ARRAY, "ARRAY"):
            return given.element is not None and _is_compatible(wanted.inner[0], given.element, with_casts)
        case (Kind.MAP, "MAP"):
            assert given.key is not None
            assert given.element is not None
            return _is_compatible(wanted.inner[0], given.key, with_casts) and _is_compatible(
                wanted.inner[1], given.element, with_casts
            )
        case (Kind.STRUCT, "STRUCT"):
            if not given.fields or not wanted.fields:
                return True
            pairs = [
                (given.field(name), inner) for name, inner in zip(wanted.fields, wanted.inner, strict=True)
            ]
            fit = all(type_ is not None and _is_compatible(inner, type_, False) for type_, inner in pairs)
            return fit and len(pairs) == len(given.fields)
        case _:
            return given.kind.value == wanted.name or (with_casts and is_implicit(given.kind, wanted.name))


def learn(wanted: ParameterType, given: Argument, generics: dict[str, SqlType]) -> str | None:
    """What the generics of `wanted` stand for, into `generics`; or why they cannot."""
    found: list[tuple[str, SqlType]] = []
    if not _resolve(found, wanted, given):
        return f"Cannot infer generics for {wanted} from {given} because they do not have the same schema structure."
    for name, type_ in found:
        old = generics.setdefault(name, type_)
        if old != type_:
            return (
                f"Found invalid instance of generic schema when mapping {wanted} to {given}. "
                f"Cannot map {name} to both {old} and {type_}"
            )
    return None


def _resolve(found: list[tuple[str, SqlType]], wanted: ParameterType, given: Argument) -> bool:
    if isinstance(given, LambdaArgument):
        if wanted.name != "LAMBDA" or len(wanted.inner) - 1 != given.count:
            return False
        if given.inputs is None:
            return True
        pairs = zip(wanted.inner, (*given.inputs, given.result), strict=True)
        return all(type_ is None or _resolve(found, inner, type_) for inner, type_ in pairs)
    if not isinstance(given, SqlType):
        return False
    if wanted.is_generic:
        found.append((wanted.name, given))
        return True
    if wanted.name != given.kind.value:
        return False
    match wanted.name:
        case "ARRAY":
            return _resolve(found, wanted.inner[0], given.element)
        case "MAP":
            return _resolve(found, wanted.inner[0], given.key) and _resolve(
                found, wanted.inner[1], given.element
            )
        case _:
            return True


def generics_of(signature: Signature, arguments: tuple[Argument, ...]) -> dict[str, SqlType]:
    generics: dict[str, SqlType] = {}
    parameters = signature.for_count(len(arguments)) or ()
    for parameter, argument in zip(parameters, arguments, strict=True):
        if argument is not None and parameter.type.has_generics:
            problem = learn(parameter.type, argument, generics)
            if problem is not None:
                raise TypeRefused(problem)
    return generics


def applied(wanted: ParameterType, generics: dict[str, SqlType]) -> SqlType:
    """The SQL type that a parameter's or result's type stands for."""
    if wanted.name in _PLAIN:
        return _PLAIN[wanted.name]
    match wanted.name:
        case "ARRAY":
            return t.array(applied(wanted.inner[0], generics))
        case "MAP":
            return t.map_of(applied(wanted.inner[0], generics), applied(wanted.inner[1], generics))
        case "STRUCT":
            return t.struct(
                *((n, applied(i, generics)) for n, i in zip(wanted.fields, wanted.inner, strict=True))
            )
        case name if name in generics:
            return generics[name]
        case name:
            raise TypeRefused(f"Could not find mapping for generic type: {name}")
