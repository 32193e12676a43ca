"""The aggregate functions: a state, and how a row comes into it, is taken back, and two states become one.

`resolve(call, type_of)` splits a call into what is computed from rows and what is constant (the n of TOPK); `aggregate_for` gives
the object that computes. States are plain (None, bool, int, float, str, bytes, list, dict, Decimal), so stores can keep them; a
state that is given in is never changed, a new one comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.streams.functions.overloads import choose
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.registry import shown_name
from penstock.streams.functions.scope import added, added_names
from penstock.streams.functions.signatures import Argument, Signature, applied, generics_of, parse
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import AggregateCall
from penstock.streams.plan.types import SqlType

TypeOf = Callable[[e.Expression], SqlType | None]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`add(state, *values)` and `remove(state, *values)` give a new state, `merge(state, state)` makes one of two. `remove` is
    None where a table cannot be aggregated: an old row cannot be taken back."""

    start: Any
    add: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    remove: Callable[..., Any] | None = None
    finish: Callable[[Any], Any] | None = None

    def initial(self) -> Any:
        return self.start

    def result(self, state: Any) -> Any:
        return state if self.finish is None else self.finish(state)


@dataclass(frozen=True, slots=True)
class Binding:
    """What an aggregate is made from: the types of the arguments (parameters included), the parameters, and the settings
    of `ksql.functions.<name>.…`."""

    types: tuple[SqlType, ...]
    parameters: tuple[Any, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    signature: Signature
    make: Callable[[Binding], Aggregate]
    parameter_count: int
    result: Callable[[tuple[SqlType, ...]], SqlType] | None
    state: Callable[[tuple[SqlType, ...]], SqlType] | None
    about: str

    def type_for(self, types: tuple[SqlType, ...]) -> SqlType:
        if self.result is not None:
            return self.result(types)
        return applied(self.signature.result, generics_of(self.signature, types))


@dataclass(slots=True)
class AggregateFunction:
    name: str
    about: str
    has_undo: bool
    overloads: list[AggregateOverload] = field(default_factory=list)


AGGREGATES: Final[dict[str, AggregateFunction]] = {}


@dataclass(frozen=True, slots=True)
class ResolvedAggregate:
    """`state_type` is the type of what is kept between rows: a STRUCT cannot be written as DELIMITED."""

    name: str
    arguments: tuple[e.Expression, ...]
    parameters: tuple[Any, ...]
    type: SqlType
    state_type: SqlType
    has_undo: bool


def aggregate(
    name: str,
    *signatures: str,
    about: str = "",
    parameters: int = 0,
    undo: bool = False,
    result: Callable[[tuple[SqlType, ...]], SqlType] | None = None,
    state: Callable[[tuple[SqlType, ...]], SqlType] | None = None,
) -> Callable[[Callable[[Binding], Aggregate]], Callable[[Binding], Aggregate]]:
    """Declares one: `parameters` of its last arguments are constants."""

    def declare(make: Callable[[Binding], Aggregate]) -> Callable[[Binding], Aggregate]:
        found = AGGREGATES.setdefault(name, AggregateFunction(name, about, undo))
        for each in signatures:
            found.overloads.append(
                AggregateOverload(parse(each), make, parameters, result, state, about or found.about)
            )
        return make

    return declare


def is_aggregate(name: str) -> bool:
    return find(name) is not None


def find(name: str) -> AggregateFunction | None:
    from penstock.streams.functions.library import aggregating  # it declares them

    assert aggregating
    return AGGREGATES.get(name.upper()) or added(name.upper(), AggregateFunction)


def names() -> list[str]:
    find("")
    return sorted([*AGGREGATES, *added_names(AggregateFunction)])


def resolve(call: e.Call, type_of: TypeOf) -> ResolvedAggregate:
    found = find(call.name)
    if found is None:
        raise TypeRefused(f"Can not find any aggregate functions with the name '{call.name}'", call.place)
    arguments = tuple(
        e.Literal(1, t.INTEGER) if isinstance(each, e.Star) else each for each in call.arguments
    )
    if not arguments:
        arguments = (e.Literal(1, t.INTEGER),)
    types = tuple(type_of(each) for each in arguments)
    overload = _choose(found, types)
    at = len(arguments) - overload.parameter_count
    parameters = tuple(_constant(call, number, arguments[number]) for number in range(at, len(arguments)))
    known = tuple(each or t.STRING for each in types)
    result = overload.type_for(known)
    state = result if overload.state is None else overload.state(known)
    return ResolvedAggregate(found.name, arguments[:at], parameters, result, state, found.has_undo)


def _choose(found: AggregateFunction, types: tuple[Argument, ...]) -> AggregateOverload:
    return choose(
        shown_name(found.name), found.overloads, lambda each: each.signature, types, implicit_casts=False
    )


def _constant(call: e.Call, number: int, argument: e.Expression) -> Any:
    if isinstance(argument, e.Negative) and isinstance(argument.operand, e.Literal):
        return -argument.operand.value if argument.sign == "-" else argument.operand.value
    if not isinstance(argument, e.Literal):
        raise TypeRefused(
            f"Parameter {number + 1} passed to function {call.name} must be a literal constant, "
            f"but was expression: '{argument}'",
            argument.place,
        )
    return argument.value


def aggregate_for(
    call: AggregateCall, type_of: TypeOf, properties: Mapping[str, str] | None = None
) -> Aggregate:
    """What computes a call of a plan. `properties` are the query's: `ksql.functions.collect_list.limit` and the like."""
    found = find(call.function)
    if found is None:
        raise TypeRefused(f"Can not find any aggregate functions with the name '{call.function}'")
    given = [type_of(each) for each in call.arguments]
    types = (*given, *(_type_of_constant(each) for each in call.parameters))
    overload = _choose(found, types)
    prefix = f"ksql.functions.{found.name.lower()}."
    settings = {
        name.lower().removeprefix(prefix): value
        for name, value in (properties or {}).items()
        if name.lower().startswith(prefix)
    }
    return overload.make(Binding(tuple(each or t.STRING for each in types), call.parameters, settings))


def _type_of_constant(value: Any) -> SqlType | None:
    match value:
        case bool():
            return t.BOOLEAN
        case int():
            return t.INTEGER if -(2**31) <= value < 2**31 else t.BIGINT
        case float():
            return t.DOUBLE
        case str():
            return t.STRING
        case _:
            return None
