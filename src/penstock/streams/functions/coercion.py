"""Implicit casts: what literals and expressions of different types have in common, and how a literal becomes another type.

Two grades. Between expressions, numbers widen (INTEGER → BIGINT → DECIMAL → DOUBLE) and texts become dates, times, timestamps
and bytes. A literal may be more: texts become numbers and booleans, anything plain becomes text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from penstock.streams.functions import casts, decimals, iso_times, java_text
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.plan import types as t
from penstock.streams.plan.expressions import Cast, Expression, Literal, MakeArray, MakeMap, MakeStruct
from penstock.streams.plan.types import Kind, SqlType

TypeOf = Callable[[Expression], SqlType | None]
NUMBERS: Final = (Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)
TIMES: Final = (Kind.TIME, Kind.DATE, Kind.TIMESTAMP)


class _NoCoercion(TypeRefused):
    pass


def is_number(type_: SqlType) -> bool:
    return type_.kind in NUMBERS


def wider(one: SqlType, other: SqlType, *, literal: bool = False) -> SqlType | None:
    """What `one` becomes where `other` is wanted; None when it cannot."""
    match one.kind, other.kind:
        case (Kind.ARRAY, Kind.ARRAY):
            assert one.element is not None
            assert other.element is not None
            item = wider(one.element, other.element, literal=literal)
            return None if item is None else t.array(item)
        case (Kind.MAP, Kind.MAP):
            assert one.key
            assert other.key
            assert one.element
            assert other.element
            key = wider(one.key, other.key, literal=literal)
            value = wider(one.element, other.element, literal=literal)
            return None if key is None or value is None else t.map_of(key, value)
        case (Kind.STRUCT, Kind.STRUCT):
            return _wider_struct(one, other, literal)
        case (given, wanted) if given in NUMBERS and wanted in NUMBERS:
            if NUMBERS.index(given) > NUMBERS.index(wanted):
                return None
            return decimals.widened(one, other) if wanted is Kind.DECIMAL else other
        case (given, wanted) if given is wanted:
            return other
        case (Kind.STRING, wanted) if wanted in TIMES or wanted is Kind.BYTES:
            return other
        case (given, Kind.STRING) if literal and given in (*NUMBERS, *TIMES, Kind.BOOLEAN):
            return other
        case (Kind.STRING, wanted) if literal and wanted in (*NUMBERS, Kind.BOOLEAN):
            return other
        case _:
            return None


def _wider_struct(one: SqlType, other: SqlType, literal: bool) -> SqlType | None:
    fields: list[tuple[str, SqlType]] = []
    for name in dict.fromkeys([name for name, _ in (*one.fields, *other.fields)]):
        left, right = one.field(name), other.field(name)
        made = (
            wider(left, right, literal=literal) if left is not None and right is not None else left or right
        )
        if made is None:
            return None
        fields.append((name, made))
    return t.struct(*fields)


def common_type(expressions: Iterable[Expression], type_of: TypeOf) -> SqlType | None:
    """Of the items of an array, the keys and values of a map, the values of IN. None when all are NULL."""
    result: SqlType | None = None
    for each in expressions:
        result = _common(each, type_of(each), result, type_of)
    return result


def _common(
    expression: Expression, given: SqlType | None, so_far: SqlType | None, type_of: TypeOf
) -> SqlType | None:
    if so_far is None:
        return given
    if given is None:
        return so_far
    match expression:
        case MakeArray() | MakeMap() | MakeStruct():
            return _common_structured(expression, given, so_far, type_of)
        case Literal(value=str(value)) if given.kind is Kind.STRING and is_number(so_far):
            return _common_number(value, so_far)
        case Literal(value=str(value)) if given.kind is Kind.STRING and so_far.kind is Kind.BOOLEAN:
            if java_text.exact_boolean(value.strip()) is None:
                raise _bad_syntax(value, so_far)
            return so_far
    literal = isinstance(expression, Literal)
    made = wider(given, so_far, literal=literal) or wider(so_far, given, literal=literal)
    if made is None:
        raise _no_operator(expression, given, so_far)
    return made


def _common_structured(
    expression: MakeArray | MakeMap | MakeStruct, given: SqlType, wanted: SqlType, type_of: TypeOf
) -> SqlType | None:
    try:
        match expression:
            case MakeArray(items=items) if wanted.kind is Kind.ARRAY:
                item = _common_all(items, wanted.element, type_of)
                return None if item is None else t.array(item)
            case MakeMap(entries=entries) if wanted.kind is Kind.MAP:
                key = _common_all([key for key, _ in entries], wanted.key, type_of)
                value = _common_all([value for _, value in entries], wanted.element, type_of)
                return None if key is None or value is None else t.map_of(key, value)
            case MakeStruct(fields=fields) if wanted.kind is Kind.STRUCT:
                return _common_struct(dict(fields), wanted, type_of)
    except _NoCoercion:
        pass
    raise _no_operator(expression, given, wanted)


def _common_all(items: Sequence[Expression], wanted: SqlType | None, type_of: TypeOf) -> SqlType | None:
    result = wanted
    for each in items:
        result = _common(each, type_of(each), result, type_of)
    return result


def _common_struct(given: dict[str, Expression], wanted: SqlType, type_of: TypeOf) -> SqlType:
    fields: list[tuple[str, SqlType]] = []
    for name in dict.fromkeys([*given, *(name for name, _ in wanted.fields)]):
        other = wanted.field(name)
        made = _common(given[name], type_of(given[name]), other, type_of) if name in given else other
        if made is None:
            raise _NoCoercion("a field has no type")
        fields.append((name, made))
    return t.struct(*fields)


def _common_number(text: str, so_far: SqlType) -> SqlType:
    try:
        given = number_type(text)
    except FunctionFailed:
        raise _bad_syntax(text, so_far) from None
    if Kind.DOUBLE in (given.kind, so_far.kind):
        return t.DOUBLE
    if Kind.DECIMAL in (given.kind, so_far.kind):
        return decimals.widened(given, so_far)
    return so_far if NUMBERS.index(given.kind) <= NUMBERS.index(so_far.kind) else given


def number_type(text: str) -> SqlType:
    """The type that a number in a text has by itself."""
    value = decimals.parsed(text.strip())
    if not any(mark in text for mark in ".eE"):
        if -(2**31) < value < 2**31 - 1:
            return t.INTEGER
        if -(2**63) < value < 2**63 - 1:
            return t.BIGINT
    return decimals.type_of_value(value)


def _bad_syntax(value: object, wanted: SqlType) -> TypeRefused:
    return TypeRefused(f'invalid input syntax for type {wanted.kind.value}: "{value}".')


def _no_operator(expression: Expression, given: SqlType, wanted: SqlType) -> _NoCoercion:
    return _NoCoercion(
        f"operator does not exist: {wanted} = {given} ({expression})\nHint: You might need to add explicit type casts.",
        expression.place,
    )


def converted(expression: Expression, given: SqlType | None, wanted: SqlType) -> Expression:
    """The same value as `wanted`: a literal as a literal, anything else by CAST."""
    if given is None or given == wanted:
        return expression
    if isinstance(expression, Literal):
        try:
            value = coerced(expression.value, given, wanted, literal=True)
        except FunctionFailed:
            raise _bad_syntax(expression.value, wanted) from None
        return Literal(value, wanted, place=expression.place)
    return Cast(expression, wanted, place=expression.place)


def coerced(value: Any, given: SqlType, wanted: SqlType, *, literal: bool = False) -> Any:
    """A value of one type as another, where this is done without being asked (INSERT VALUES, literals). FunctionFailed when the
    value does not fit, TypeRefused when the types never do."""
    if value is None:
        return None
    if given == wanted:
        return value
    if wider(given, wanted, literal=literal) is None:
        raise TypeRefused(f"Cannot coerce {given} to {wanted}")
    match given.kind, wanted.kind:
        case (Kind.ARRAY, _):
            assert given.element
            assert wanted.element
            return [coerced(each, given.element, wanted.element, literal=literal) for each in value]
        case (Kind.MAP, _):
            assert given.key
            assert wanted.key
            assert given.element
            assert wanted.element
            return {
                coerced(key, given.key, wanted.key, literal=literal): coerced(
                    item, given.element, wanted.element, literal=literal
                )
                for key, item in value.items()
            }
        case (Kind.STRUCT, _):
            fields: dict[str, Any] = {}
            for name, type_ in wanted.fields:
                old = given.field(name)
                fields[name] = None if old is None else coerced(value.get(name), old, type_, literal=literal)
            return fields
        case (_, Kind.DECIMAL):
            number = Decimal(value) if isinstance(value, int) else decimals.parsed(str(value).strip())
            return decimals.ensure_fit(value if isinstance(value, Decimal) else number, wanted)
        case (Kind.STRING, Kind.BOOLEAN):
            found = java_text.exact_boolean(value.strip())
            if found is None:
                raise FunctionFailed(f"Not a boolean: {value}")
            return found
        case (Kind.STRING, Kind.TIMESTAMP):
            return iso_times.parse_timestamp(value.strip())
        case _:
            return casts.caster(given, wanted)(value)
