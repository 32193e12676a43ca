"""The aggregates whose state is a number or two: COUNT, SUM, AVG, MIN, MAX, deviations, CORRELATION."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from penstock.streams.functions import decimals, java_text
from penstock.streams.functions.aggregates import Aggregate, Binding, aggregate
from penstock.streams.functions.comparing import order_key
from penstock.streams.functions.library import collecting as collecting
from penstock.streams.functions.operators import divide_whole
from penstock.streams.plan import types as t
from penstock.streams.plan.types import Kind, SqlType


@aggregate("COUNT", "T val -> BIGINT", about="Counts records by key.", undo=True)
def count(binding: Binding) -> Aggregate:
    return Aggregate(
        0,
        add=lambda state, value: state if value is None else state + 1,
        remove=lambda state, value: state if value is None else state - 1,
        merge=lambda one, other: one + other,
    )


def _decimal_sum(type_: SqlType) -> Aggregate:
    context = Context(prec=type_.precision, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)

    def add(state: Decimal, value: Decimal | None) -> Decimal:
        if value is None:
            return state
        total = context.add(state, value)
        decimals.ensure_max(total, type_.precision, type_.scale)
        return total

    return Aggregate(
        Decimal(0),
        add=add,
        remove=lambda state, value: state if value is None else context.subtract(state, value),
        merge=context.add,
    )


_WRAP: Final[dict[Kind, Callable[[Any], Any]]] = {
    Kind.INTEGER: java_text.wrap_int,
    Kind.BIGINT: java_text.wrap_long,
}


def _kept(value: Any) -> Any:
    return value


@aggregate(
    "SUM",
    *(f"{kind} val -> {kind}" for kind in ("DECIMAL", "DOUBLE", "BIGINT", "INTEGER")),
    about="Computes the sum for a key.",
    undo=True,
    result=lambda types: types[0],
)
def sum_(binding: Binding) -> Aggregate:
    kind = binding.types[0].kind
    if kind is Kind.DECIMAL:
        return _decimal_sum(binding.types[0])
    wrap = _WRAP.get(kind, _kept)
    return Aggregate(
        0.0 if kind is Kind.DOUBLE else 0,
        add=lambda state, value: state if value is None else wrap(state + value),
        remove=lambda state, value: state if value is None else wrap(state - value),
        merge=lambda one, other: wrap(one + other),
    )


@aggregate(
    "SUM_LIST",
    *(f"ARRAY<{kind}> list -> {kind}" for kind in ("DOUBLE", "INTEGER", "BIGINT")),
    about="Returns the sum of elements contained in the list.",
    undo=True,
)
def sum_list(binding: Binding) -> Aggregate:
    element = binding.types[0].element
    assert element is not None
    kind = element.kind
    wrap = _WRAP.get(kind, _kept)
    start: int | float = 0.0 if kind is Kind.DOUBLE else 0

    def total(items: list[Any]) -> Any:
        return sum((item for item in items if item is not None), start)

    return Aggregate(
        start,
        add=lambda state, items: state if items is None else wrap(state + total(items)),
        remove=lambda state, items: state if items is None else wrap(state - total(items)),
        merge=lambda one, other: wrap(one + other),
    )


def _sum_and_count(types: tuple[SqlType, ...]) -> SqlType:
    return t.struct(("SUM", types[0]), ("COUNT", t.BIGINT))


@aggregate(
    "AVG",
    *(f"{kind} val -> DOUBLE" for kind in ("BIGINT", "INTEGER", "DOUBLE")),
    about="Returns the average value of the column computed as the sum divided by the count. "
    "Applicable only to numeric types.",
    undo=True,
    state=_sum_and_count,
)
def avg(binding: Binding) -> Aggregate:
    kind = binding.types[0].kind
    wrap = _WRAP.get(kind, _kept)
    return Aggregate(
        [0.0 if kind is Kind.DOUBLE else 0, 0],
        add=lambda state, value: state if value is None else [wrap(state[0] + value), state[1] + 1],
        remove=lambda state, value: state if value is None else [wrap(state[0] - value), state[1] - 1],
        merge=lambda one, other: [wrap(one[0] + other[0]), one[1] + other[1]],
        finish=lambda state: float(state[0]) / state[1] if state[1] else 0.0,
    )


_COMPARABLE: Final = (
    "INTEGER",
    "BIGINT",
    "DOUBLE",
    "DECIMAL",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "STRING",
    "BYTES",
)


def _extreme(binding: Binding, is_first: Callable[[Any, Any], bool]) -> Aggregate:
    key = order_key(binding.types[0])

    def add(state: Any, value: Any) -> Any:
        if value is None:
            return state
        if state is None:
            return value
        return value if is_first(key(value), key(state)) else state

    return Aggregate(None, add=add, merge=lambda one, other: add(other, one))


@aggregate(
    "MAX",
    *(f"{kind} val -> {kind}" for kind in _COMPARABLE),
    about="Computes the maximum value for a key.",
    result=lambda types: types[0],
)
def max_(binding: Binding) -> Aggregate:
    return _extreme(binding, lambda one, other: bool(one > other))


@aggregate(
    "MIN",
    *(f"{kind} val -> {kind}" for kind in _COMPARABLE),
    about="Computes the minimum value for a key.",
    result=lambda types: types[0],
)
def min_(binding: Binding) -> Aggregate:
    return _extreme(binding, lambda one, other: bool(one < other))


def _deviation_state(types: tuple[SqlType, ...]) -> SqlType:
    return t.struct(("SUM", types[0]), ("COUNT", t.BIGINT), ("M2", t.DOUBLE))


def _deviation(
    kind: Kind, finish: Callable[[float, int], float], mean: Callable[[Any, int], float]
) -> Aggregate:
    """State: count, sum, and the sum of squares of differences from the mean."""
    wrap = _WRAP.get(kind, _kept)

    def part(state: list[Any], value: Any, count: int, divisor: int) -> float:
        if not divisor:
            return 0.0
        delta = float(value * (count + 1) - (state[1] + value))
        return delta * delta / divisor

    def add(state: list[Any], value: Any) -> list[Any]:
        if value is None:
            return state
        new = state[0] + 1
        return [new, wrap(state[1] + value), state[2] + part(state, value, state[0], new * (new - 1))]

    def remove(state: list[Any], value: Any) -> list[Any]:
        if value is None:
            return state
        new = state[0] - 1
        return [
            new,
            wrap(state[1] - value),
            state[2] - part(state, value, state[0], new * (new + 1) if new > 0 else 0),
        ]

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        count, square = one[0] + other[0], one[2] + other[2]
        if one[0] and other[0]:
            between = mean(one[1], one[0]) - mean(other[1], other[0])
            square += one[0] * other[0] * between * between / count
        return [count, wrap(one[1] + other[1]), square]

    return Aggregate(
        [0, 0.0 if kind is Kind.DOUBLE else 0, 0.0],
        add=add,
        remove=remove,
        merge=merge,
        finish=lambda state: 0.0 if state[0] < 2 else finish(state[2], state[0]),
    )


def _exact_mean(total: float, count: int) -> float:
    return total / count


_DEVIATION_ABOUT: Final = (
    "Returns the sample standard deviation of the column. Applicable only to numeric types."
)
_DEVIATION_SIGNATURES: Final = tuple(f"{kind} val -> DOUBLE" for kind in ("BIGINT", "INTEGER", "DOUBLE"))


@aggregate("STDDEV_SAMP", *_DEVIATION_SIGNATURES, about=_DEVIATION_ABOUT, undo=True, state=_deviation_state)
def stddev_samp(binding: Binding) -> Aggregate:
    """The variance: the name has been kept for those who use it. Where sessions meet, means of whole numbers are whole."""
    kind = binding.types[0].kind
    mean = _exact_mean if kind is Kind.DOUBLE else divide_whole
    return _deviation(kind, lambda square, count: square / (count - 1), mean)


@aggregate("STDDEV_SAMPLE", *_DEVIATION_SIGNATURES, about=_DEVIATION_ABOUT, undo=True, state=_deviation_state)
def stddev_sample(binding: Binding) -> Aggregate:
    return _deviation(
        binding.types[0].kind, lambda square, count: math.sqrt(max(square, 0.0) / (count - 1)), _exact_mean
    )


def _correlation_state(types: tuple[SqlType, ...]) -> SqlType:
    sums = ("X_SUM", "Y_SUM", "X_SQUARED_SUM", "Y_SQUARED_SUM", "XY_SUM")
    return t.struct(*((name, t.DOUBLE) for name in sums), ("COUNT", t.BIGINT))


@aggregate(
    "CORRELATION",
    *(f"{kind} x, {kind} y -> DOUBLE" for kind in ("DOUBLE", "INTEGER", "BIGINT")),
    about="Computes the Pearson correlation coefficient between two columns of data.",
    undo=True,
    state=_correlation_state,
)
def correlation(binding: Binding) -> Aggregate:
    def moved(state: list[Any], x: Any, y: Any, sign: int) -> list[Any]:
        if x is None or y is None:
            return state
        x, y = float(x), float(y)
        steps = (x, y, x * x, y * y, x * y)
        return [*(old + sign * step for old, step in zip(state, steps, strict=False)), state[5] + sign]

    def finish(state: list[Any]) -> float:
        x, y, xx, yy, xy, count = state
        square = (count * xx - x * x) * (count * yy - y * y)
        above = count * xy - x * y
        if square != square or square < 0 or above != above:
            return math.nan
        below = math.sqrt(square)
        if not below:
            return math.nan if not above else math.copysign(math.inf, above)
        return float(above / below)

    return Aggregate(
        [0.0, 0.0, 0.0, 0.0, 0.0, 0],
        add=lambda state, x, y: moved(state, x, y, 1),
        remove=lambda state, x, y: moved(state, x, y, -1),
        merge=lambda one, other: [a + b for a, b in zip(one, other, strict=True)],
        finish=finish,
    )
