"""Numbers: rounding, roots, trigonometry, the largest and the least, distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any, Final

from penstock.model.java_values import java_float
from penstock.streams.functions import decimals, java_text
from penstock.streams.functions.comparing import order_key
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.registry import same_as_first, scalar
from penstock.streams.functions.signatures import Argument
from penstock.streams.plan.types import SqlType
from penstock.streams.plan.types import decimal as decimal_type

_MATH: Final = "MATHEMATICAL"
_WHOLE: Final = ("INTEGER", "BIGINT")
MAX_PLACES: Final = 10_000


@scalar("ABS", "DOUBLE val -> DOUBLE", category=_MATH, about="Returns the absolute value of its argument.")
def abs_double(value: float) -> float:
    return abs(value)


@scalar("ABS", "INTEGER val -> INTEGER")
def abs_integer(value: int) -> int:
    return java_text.wrap_int(abs(value))


@scalar("ABS", "BIGINT val -> BIGINT")
def abs_bigint(value: int) -> int:
    return java_text.wrap_long(abs(value))


@scalar("ABS", "DECIMAL val -> DECIMAL", result=same_as_first)
def abs_decimal(value: Decimal) -> Decimal:
    return value.copy_abs()


@scalar(
    "CEIL",
    "INTEGER val -> INTEGER",
    "BIGINT val -> BIGINT",
    category=_MATH,
    about="The smallest integer that is not less.",
)
@scalar(
    "FLOOR",
    "INTEGER val -> INTEGER",
    "BIGINT val -> BIGINT",
    category=_MATH,
    about="The largest integer that is not more.",
)
def whole_already(value: int) -> int:
    return value


@scalar("CEIL", "DOUBLE val -> DOUBLE")
def ceil_double(value: float) -> float:
    return (
        math.copysign(float(math.ceil(value)), value)
        if math.isfinite(value) and abs(value) < 2**52
        else value
    )


@scalar("FLOOR", "DOUBLE val -> DOUBLE")
def floor_double(value: float) -> float:
    return (
        math.copysign(float(math.floor(value)), value)
        if math.isfinite(value) and abs(value) < 2**52
        else value
    )


@scalar("CEIL", "DECIMAL val -> DECIMAL", result=same_as_first)
def ceil_decimal(value: Decimal) -> Decimal:
    return decimals.with_scale(decimals.with_scale(value, 0, ROUND_CEILING), decimals.scale_of(value))


@scalar("FLOOR", "DECIMAL val -> DECIMAL", result=same_as_first)
def floor_decimal(value: Decimal) -> Decimal:
    return decimals.with_scale(decimals.with_scale(value, 0, ROUND_FLOOR), decimals.scale_of(value))


def _whole_decimal(arguments: tuple[Argument, ...]) -> SqlType:
    first = same_as_first(arguments)
    decimals.check_parameters(first.precision - first.scale, 0)
    return decimal_type(first.precision - first.scale, 0)


def _places(places: int) -> int:
    if abs(places) > MAX_PLACES:
        raise FunctionFailed(f"So many decimal places cannot be: {places}")
    return places


def _rounded(value: Decimal, places: int) -> Decimal:
    """Ties go up, also below zero."""
    return decimals.with_scale(value, _places(places), ROUND_HALF_UP if value > 0 else ROUND_HALF_DOWN)


def _cut(value: Decimal, places: int) -> Decimal:
    return decimals.with_scale(value, _places(places), ROUND_DOWN)


@scalar(
    "ROUND",
    "BIGINT val -> BIGINT",
    "INTEGER val -> BIGINT",
    category=_MATH,
    about="Round a value to the number of decimal places as specified by scale. Numbers equidistant to the nearest value "
    "are rounded up, in the positive direction.",
)
@scalar(
    "TRUNC",
    "BIGINT val -> BIGINT",
    "INTEGER val -> BIGINT",
    category=_MATH,
    about="Cut off digits behind the scale.",
)
def kept(value: int) -> int:
    return value


@scalar("ROUND", "DOUBLE val -> BIGINT")
def round_double(value: float) -> int:
    if not math.isfinite(value) or abs(value) >= 2**52:
        return java_text.long_of_double(value)
    below = math.floor(value)
    return below + (value - below >= 0.5)


@scalar("TRUNC", "DOUBLE val -> BIGINT")
def trunc_double(value: float) -> int:
    return java_text.long_of_double(value)


def _finite(value: float) -> Decimal:
    if not math.isfinite(value):
        raise FunctionFailed("Infinite or NaN")
    return Decimal(java_float(value))


@scalar("ROUND", "DOUBLE val, INTEGER decimalPlaces -> DOUBLE")
def round_double_to(value: float, places: int) -> float:
    return float(_rounded(_finite(value), places))


@scalar("TRUNC", "DOUBLE val, INTEGER decimalPlaces -> DOUBLE")
def trunc_double_to(value: float, places: int) -> float:
    return float(_cut(_finite(value), places))


@scalar("ROUND", "DECIMAL val -> DECIMAL", result=_whole_decimal)
def round_decimal(value: Decimal) -> Decimal:
    return _rounded(value, 0)


@scalar("TRUNC", "DECIMAL val -> DECIMAL", result=_whole_decimal)
def trunc_decimal(value: Decimal) -> Decimal:
    return _cut(value, 0)


@scalar("ROUND", "DECIMAL val, INTEGER decimalPlaces -> DECIMAL", result=same_as_first)
def round_decimal_to(value: Decimal, places: int) -> Decimal:
    return decimals.with_exact_scale(_rounded(value, places), decimals.scale_of(value))


@scalar("TRUNC", "DECIMAL val, INTEGER decimalPlaces -> DECIMAL", result=same_as_first)
def trunc_decimal_to(value: Decimal, places: int) -> Decimal:
    return decimals.with_exact_scale(_cut(value, places), decimals.scale_of(value))


@scalar(
    "SIGN",
    *(f"{kind} value -> INTEGER" for kind in (*_WHOLE, "DOUBLE")),
    category=_MATH,
    about="The sign of a value.",
)
def sign(value: float) -> int:
    return int(value > 0) - int(value < 0)


def _logarithm(value: float) -> float:
    if value != value or value < 0:
        return math.nan
    return math.log(value) if value else -math.inf


def _square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _within_one(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if -1 <= value <= 1 else math.nan


def _finite_only(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if math.isfinite(value) else math.nan


def _hyperbolic(function: Callable[[float], float], *, is_even: bool) -> Callable[[float], float]:
    def compute(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf if is_even else math.copysign(math.inf, value)

    return compute


def _cotangent(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    tangent = math.tan(value)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


_OF_ONE: Final[dict[str, tuple[Callable[[float], float], str]]] = {
    "ACOS": (_within_one(math.acos), "The inverse (arc) cosine of a value."),
    "ASIN": (_within_one(math.asin), "The inverse (arc) sine of a value."),
    "ATAN": (math.atan, "The inverse (arc) tangent of a value."),
    "CBRT": (math.cbrt, "The cube root of a value."),
    "COS": (_finite_only(math.cos), "The cosine of a value."),
    "COSH": (_hyperbolic(math.cosh, is_even=True), "The hyperbolic cosine of a value."),
    "COT": (_cotangent, "The cotangent of a value."),
    "DEGREES": (math.degrees, "Converts a value in radians to a value in degrees."),
    "EXP": (_exponential, "The exponential of a value."),
    "LN": (_logarithm, "The natural logarithm of a value."),
    "LOG": (_logarithm, "The logarithm of a value."),
    "RADIANS": (math.radians, "Converts a value in degrees to a value in radians."),
    "SIN": (_finite_only(math.sin), "The sine of a value."),
    "SINH": (_hyperbolic(math.sinh, is_even=False), "The hyperbolic sine of a value."),
    "SQRT": (_square_root, "The square root of a value."),
    "TAN": (_finite_only(math.tan), "The tangent of a value."),
    "TANH": (math.tanh, "The hyperbolic tangent of a value."),
}


def _declare_of_one(name: str, function: Callable[[float], float], about: str) -> None:
    def compute(value: float) -> float:
        return function(float(value))

    scalar(name, *(f"{kind} value -> DOUBLE" for kind in (*_WHOLE, "DOUBLE")), category=_MATH, about=about)(
        compute
    )


for _name, (_function, _about) in _OF_ONE.items():
    _declare_of_one(_name, _function, _about)


@scalar(
    "ATAN2",
    *(f"{kind} y, {kind} x -> DOUBLE" for kind in (*_WHOLE, "DOUBLE")),
    category=_MATH,
    about="The arc tangent of y / x.",
)
def atan2(y: float, x: float) -> float:
    return math.atan2(y, x)


@scalar("LOG", *(f"{kind} base, {kind} value -> DOUBLE" for kind in (*_WHOLE, "DOUBLE")))
def log_to_base(base: float, value: float) -> float:
    if base <= 0 or base == 1:
        return math.nan
    return _logarithm(float(value)) / _logarithm(float(base))


@scalar(
    "POWER",
    *(f"{kind} base, {kind} exponent -> DOUBLE" for kind in (*_WHOLE, "DOUBLE")),
    category=_MATH,
    about="Given a base and an exponent, returns the result of the base raised to the exponent.",
)
def power(base: float, exponent: float) -> float:
    base, exponent = float(base), float(exponent)
    if abs(base) == 1 and math.isinf(exponent):
        return math.nan
    if base == 1 and exponent != exponent:
        return math.nan
    is_odd = math.isfinite(exponent) and exponent == int(exponent) and int(exponent) % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:  # a root of what is below zero, or zero to less than zero
        if base:
            return math.nan
        return math.copysign(math.inf, base) if is_odd else math.inf


@scalar("PI", "-> DOUBLE", category=_MATH, about="The value of Pi.")
def pi() -> float:
    return math.pi


def _common_decimal(arguments: tuple[Argument, ...]) -> SqlType:
    known = [each for each in arguments if isinstance(each, SqlType)]
    if not known:
        raise TypeRefused("All arguments are NULL")
    return reduce(decimals.widened, known)


def _declare_extreme(name: str, about: str, choose: Callable[..., Any]) -> None:
    def bound(arguments: tuple[Argument, ...], result: SqlType) -> Callable[..., Any]:
        key = order_key(result)

        def extreme(*values: Any) -> Any:
            there = [value for value in values if value is not None]
            return choose(there, key=key) if there else None

        return extreme

    kinds = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
    plain = [f"{kind} val, {kind}... vals -> {kind}" for kind in kinds]
    scalar(name, *plain, about=about, category=_MATH, nulls="own", bound=True)(bound)
    scalar(name, "DECIMAL val, DECIMAL... vals -> DECIMAL", nulls="own", bound=True, result=_common_decimal)(
        bound
    )


_declare_extreme(
    "GREATEST", "Returns the highest non-null value among a variable number of comparable columns.", max
)
_declare_extreme(
    "LEAST", "Returns the lowest non-null value among a variable number of comparable columns.", min
)

_EARTH_KM: Final = 6371.0
_EARTH_MILES: Final = 3959.0
_UNITS: Final = {
    **dict.fromkeys(("mi", "mile", "miles"), _EARTH_MILES),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres", ""), _EARTH_KM),
}


@scalar(
    "GEO_DISTANCE",
    "DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2 -> DOUBLE",
    "DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2, STRING units -> DOUBLE",
    nulls="own",
    about="Compute the distance between two points on the surface of the earth, according to the Haversine formula.",
)
def geo_distance(
    lat1: float | None, lon1: float | None, lat2: float | None, lon2: float | None, units: str | None = None
) -> float | None:
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        return None
    if not all(-90 <= each <= 90 for each in (lat1, lat2)):
        raise FunctionFailed(
            "valid latitude values for GeoDistance function are in the range of -90 to 90 decimal degrees"
        )
    if not all(-180 <= each <= 180 for each in (lon1, lon2)):
        raise FunctionFailed(
            "valid longitude values for GeoDistance function are in the range of -180 to +180 decimal degrees"
        )
    radius = _UNITS.get((units or "").strip().lower())
    if radius is None:
        raise FunctionFailed(
            "GeoDistance function units parameter must be one of mi, mile, miles, km, kilometer, kilometers"
        )
    half_lat, half_lon = math.radians(lat2 - lat1) / 2, math.radians(lon2 - lon1) / 2
    square = math.sin(half_lat) ** 2 + math.sin(half_lon) ** 2 * math.cos(math.radians(lat1)) * math.cos(
        math.radians(lat2)
    )
    return 2 * math.asin(math.sqrt(min(square, 1.0))) * radius
