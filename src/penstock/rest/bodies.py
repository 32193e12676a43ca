"""The bodies of requests: JSON objects with known fields of known types; Kafka REST's codes for what is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Final, TypeVar

import orjson

from penstock.rest.values import shown
from penstock.web.call import Call
from penstock.web.errors import HttpError

T = TypeVar("T")

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_JAVA: Final = {str: "java.lang.String", bool: "boolean", dict: "object", list: "array"}
_NO_DEFAULT: Final = object()


async def json_object(
    call: Call,
    known: Collection[str],
    *,
    may_be_empty: bool = False,
    parsed: Callable[[bytes], Awaitable[Any]] | None = None,
) -> dict[str, Any]:
    """HttpError 400 for what is no JSON object, 422 for a field that nobody knows or for no body at all."""
    data = await call.body()
    if not data.strip():
        if may_be_empty:
            return {}
        raise HttpError(422, "Payload error. Request body is empty. Data is required.", error_code=42206)
    try:
        found = orjson.loads(data) if parsed is None else await parsed(data)
    except orjson.JSONDecodeError as error:
        raise HttpError(400, f"The body is not JSON: {error}") from None
    return checked_object(found, known)


def checked_object(found: Any, known: Collection[str]) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise not_of_type(found, "object")
    for name in found:
        if name not in known:
            raise HttpError(422, f"Unrecognized field: {name[:100]}")
    return found


def not_of_type(value: Any, wanted: str) -> HttpError:
    return HttpError(400, f"Cannot deserialize value of type `{wanted}` from {shown(value)}")


def _typed(holder: dict[str, Any], name: str, kind: type[T], default: Any) -> Any:
    value = holder.get(name)
    if value is None:
        if default is _NO_DEFAULT:
            raise HttpError(422, f"{name} may not be null")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise not_of_type(value, _JAVA.get(kind, kind.__name__))
    return value


def text(holder: dict[str, Any], name: str, default: Any = _NO_DEFAULT) -> Any:
    return _typed(holder, name, str, default)


def flag(holder: dict[str, Any], name: str, default: bool) -> bool:
    return bool(_typed(holder, name, bool, default))


def items(holder: dict[str, Any], name: str, default: Any = _NO_DEFAULT) -> list[Any]:
    found: list[Any] = _typed(holder, name, list, default)
    return found


def number(holder: dict[str, Any], name: str, default: Any = _NO_DEFAULT, *, high: int = INT_MAX) -> Any:
    """A whole number; one in a string counts, as for Jackson."""
    value = holder.get(name)
    if value is None:
        if default is _NO_DEFAULT:
            raise HttpError(422, f"{name} may not be null")
        return default
    wanted = "java.lang.Integer" if high == INT_MAX else "java.lang.Long"
    if isinstance(value, str):
        digits = value.strip()
        if (
            not digits.removeprefix("-").isascii()
            or not digits.removeprefix("-").isdigit()
            or len(digits) > 20
        ):
            raise not_of_type(value, wanted)
        value = int(digits)
    if isinstance(value, bool) or not isinstance(value, int) or not -high - 1 <= value <= high:
        raise not_of_type(value, wanted)
    return value


def objects(found: Iterable[Any], known: Collection[str]) -> list[dict[str, Any]]:
    return [checked_object(each, known) for each in found]
