"""What SHOW FUNCTIONS and DESCRIBE FUNCTION tell of all functions, in the words of their declarations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from penstock.streams.functions import aggregates, catalog, tables
from penstock.streams.functions.signatures import Signature


class FunctionKind(StrEnum):
    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class ArgumentDescription:
    name: str
    type: str
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class SignatureDescription:
    arguments: tuple[ArgumentDescription, ...]
    return_type: str
    about: str


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    name: str
    kind: FunctionKind
    category: str
    about: str
    signatures: tuple[SignatureDescription, ...]


def describe(name: str) -> FunctionDescription | None:
    name = name.upper()
    if (scalar := catalog.find(name)) is not None:
        told = [(each.signature, each.about or scalar.about) for each in scalar.overloads]
        return FunctionDescription(
            name, FunctionKind.SCALAR, scalar.category, scalar.about, _signatures(told)
        )
    if (aggregate := aggregates.find(name)) is not None:
        told = [(each.signature, each.about) for each in aggregate.overloads]
        return FunctionDescription(
            name, FunctionKind.AGGREGATE, "AGGREGATE", aggregate.about, _signatures(told)
        )
    if (table := tables.find(name)) is not None:
        told = [(each.signature, table.about) for each in table.overloads]
        return FunctionDescription(name, FunctionKind.TABLE, "TABLE", table.about, _signatures(told))
    return None


def described() -> list[FunctionDescription]:
    """All of them, by name."""
    names = sorted([*catalog.names(), *aggregates.names(), *tables.names()])
    return [found for name in names if (found := describe(name)) is not None]


def _signatures(told: Iterable[tuple[Signature, str]]) -> tuple[SignatureDescription, ...]:
    return tuple(
        SignatureDescription(
            tuple(
                ArgumentDescription(each.name, str(each.type), each.is_variadic)
                for each in signature.parameters
            ),
            str(signature.result),
            about,
        )
        for signature, about in told
    )
