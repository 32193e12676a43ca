"""What a program gives, as a value of the SQL type that was declared. Dates are days since 1970, times and timestamps
milliseconds, as functions get them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.plan.types import Kind, SqlType

_BITS: Final = {
    Kind.INTEGER: 31,
    Kind.DATE: 31,
    Kind.BIGINT: 63,
    Kind.TIME: 63,
    Kind.TIMESTAMP: 63,
}


def as_declared(value: Any, type_: SqlType) -> Any:
    """FunctionFailed for a value of another type."""
    if value is None:
        return None
    found = _converted(value, type_)
    if found is None:
        raise FunctionFailed(f"it gives {_shown(value)}, and {type_} is declared")
    return found


def _converted(value: Any, type_: SqlType) -> Any:
    kind = type_.kind
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if kind in _BITS:
        return value if is_number and -(1 << _BITS[kind]) <= value < 1 << _BITS[kind] else None
    match kind:
        case Kind.BOOLEAN:
            return value if isinstance(value, bool) else None
        case Kind.DOUBLE:
            return float(value) if is_number or isinstance(value, float) else None
        case Kind.STRING:
            return value if isinstance(value, str) else None
        case Kind.BYTES:
            return value if isinstance(value, bytes) else None
        case Kind.DECIMAL:
            return _decimal(value, type_) if is_number or isinstance(value, Decimal) else None
        case Kind.ARRAY if isinstance(value, list | tuple) and type_.element is not None:
            return [as_declared(each, type_.element) for each in value]
        case Kind.MAP if isinstance(value, dict) and type_.element is not None and type_.key is not None:
            return {
                as_declared(key, type_.key): as_declared(each, type_.element) for key, each in value.items()
            }
        case Kind.STRUCT if isinstance(value, dict):
            given = {str(name).upper(): each for name, each in value.items()} | value
            return {
                name: as_declared(given.get(name, given.get(name.upper())), each)
                for name, each in type_.fields
            }
        case _:
            return None


def _decimal(value: Any, type_: SqlType) -> Decimal | None:
    try:
        found = Decimal(value).quantize(Decimal(1).scaleb(-type_.scale))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found.adjusted() < type_.precision - type_.scale else None


def _shown(value: Any) -> str:
    text = repr(value)
    return (
        f"{text[:100]}… ({type(value).__name__})" if len(text) > 100 else f"{text} ({type(value).__name__})"
    )
