"""Which of a function's signatures a call means.

First those that fit as they are, then those that fit with implicit casts. Of several the best: one without a variadic parameter,
with more parameters, with fewer generics. Two that are equally good are refused: the caller has to say it with CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.signatures import Argument, Parameter, Signature, accepts
from penstock.streams.plan.types import SqlType

Chosen = TypeVar("Chosen")
_DESCRIBE = "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"


def choose(
    name: str,
    candidates: Sequence[Chosen],
    signature_of: Callable[[Chosen], Signature],
    arguments: tuple[Argument, ...],
    *,
    implicit_casts: bool = True,
) -> Chosen:
    for with_casts in (False, True) if implicit_casts else (False,):
        fitting = [each for each in candidates if _fits(signature_of(each), arguments, with_casts)]
        ranked = sorted(fitting, key=lambda each: _rank(signature_of(each)))
        if len(ranked) > 1 and _rank(signature_of(ranked[-1])) == _rank(signature_of(ranked[-2])):
            raise TypeRefused(
                f"Function '{name}' cannot be resolved due to ambiguous method parameters {_shown(arguments)}.\n"
                "Use CAST() to explicitly cast your parameters to one of the supported function calls.\n"
                f"Valid function calls are:\n{_alternatives(name, candidates, signature_of)}\n{_DESCRIBE}"
            )
        if ranked:
            return ranked[-1]
    raise TypeRefused(
        f"Function '{name}' does not accept parameters {_shown(arguments)}.\n"
        f"Valid alternatives are:\n{_alternatives(name, candidates, signature_of)}\n{_DESCRIBE}"
    )


def _fits(signature: Signature, arguments: tuple[Argument, ...], with_casts: bool) -> bool:
    parameters = signature.for_count(len(arguments))
    if parameters is None:
        return False
    generics: dict[str, SqlType] = {}
    return all(
        accepts(parameter.type, argument, generics, with_casts=with_casts)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def _rank(signature: Signature) -> tuple[int, int, int, int, int]:
    at = signature.variadic_at
    takes_anything = any(each.is_variadic and each.type.name == "ANY" for each in signature.parameters)
    generic = sum(
        each.type.has_generics or (each.is_variadic and each.type.name == "ANY")
        for each in signature.parameters
    )
    return (0 if at >= 0 else 1, len(signature.parameters), -generic, 0 if takes_anything else 1, at)


def _shown(arguments: tuple[Argument, ...]) -> str:
    return "(" + ", ".join("null" if each is None else _type_text(each) for each in arguments) + ")"


def _type_text(argument: Argument) -> str:
    return str(argument).replace("`", "")


def _alternatives(
    name: str, candidates: Sequence[Chosen], signature_of: Callable[[Chosen], Signature]
) -> str:
    return "\n".join(call_text(name, signature_of(each).parameters) for each in candidates)


def call_text(name: str, parameters: tuple[Parameter, ...]) -> str:
    return f"{name}({', '.join(map(str, parameters))})"
