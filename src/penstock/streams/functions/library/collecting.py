"""The aggregates whose state is a collection: COLLECT_LIST, COLLECT_SET, HISTOGRAM, ATTR, TOPK, EARLIEST and LATEST_BY_OFFSET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.streams.functions.aggregates import Aggregate, Binding, aggregate
from penstock.streams.functions.comparing import order_key
from penstock.streams.functions.library import distinct as distinct
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.plan import types as t
from penstock.streams.plan.types import SqlType

_UNLIMITED: Final = 2**31 - 1
HISTOGRAM_LIMIT: Final = 1000


def _limit(binding: Binding) -> int:
    given = int(binding.settings.get("limit", _UNLIMITED))
    return given if given >= 0 else _UNLIMITED


def _list_of_first(types: tuple[SqlType, ...]) -> SqlType:
    return t.array(types[0])


@aggregate(
    "COLLECT_LIST",
    "T val -> ARRAY<T>",
    about="Gather all of the values from an input grouping into a single Array field. "
    "The size is limited by ksql.functions.collect_list.limit.",
    undo=True,
)
def collect_list(binding: Binding) -> Aggregate:
    limit = _limit(binding)

    def remove(state: list[Any], value: Any) -> list[Any]:
        at = next((at for at in range(len(state) - 1, -1, -1) if state[at] == value), None)
        return state if at is None else state[:at] + state[at + 1 :]

    return Aggregate(
        [],
        add=lambda state, value: [*state, value] if len(state) < limit else state,
        remove=remove,
        merge=lambda one, other: (one + other)[: max(limit, len(one))],
    )


@aggregate(
    "COLLECT_SET",
    "T val -> ARRAY<T>",
    about="Gather all of the distinct values from an input grouping into a single Array. "
    "The size is limited by ksql.functions.collect_set.limit.",
)
def collect_set(binding: Binding) -> Aggregate:
    limit = _limit(binding)

    def add(state: list[Any], value: Any) -> list[Any]:
        return [*state, value] if len(state) < limit and value not in state else state

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        for value in other:
            one = add(one, value)
        return one

    return Aggregate([], add=add, merge=merge)


@aggregate(
    "HISTOGRAM",
    "STRING val -> MAP<STRING, BIGINT>",
    about="Returns a map of each distinct String from the input Stream or Table and how many times each occurs. "
    f"The map is limited to {HISTOGRAM_LIMIT} entries.",
    undo=True,
)
def histogram(binding: Binding) -> Aggregate:
    def add(state: dict[Any, int], value: Any, times: int = 1) -> dict[Any, int]:
        if len(state) >= HISTOGRAM_LIMIT and value not in state:
            return state
        return {**state, value: state.get(value, 0) + times}

    def remove(state: dict[Any, int], value: Any) -> dict[Any, int]:
        left = state.get(value, 0) - 1
        if left > 0:
            return {**state, value: left}
        return {each: times for each, times in state.items() if each != value}

    def merge(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for value, times in other.items():
            one = add(one, value, times)
        return one

    return Aggregate({}, add=add, remove=remove, merge=merge)


def _attr_state(types: tuple[SqlType, ...]) -> SqlType:
    return t.array(t.struct(("VALUE", types[0]), ("COUNT", t.INTEGER)))


@aggregate(
    "ATTR",
    "T val -> T",
    about="The one value that all rows of a group have; NULL when they have several.",
    undo=True,
    state=_attr_state,
)
def attr(binding: Binding) -> Aggregate:
    """State: pairs of a value and how many rows have it."""

    def changed(state: list[Any], value: Any, times: int) -> list[Any]:
        for at, (each, old) in enumerate(state):
            if each == value and (each is None) == (value is None):
                return [*state[:at], [value, max(0, old + times)], *state[at + 1 :]]
        return [*state, [value, times]] if times > 0 else state

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        for value, times in other:
            one = changed(one, value, times)
        return one

    def finish(state: list[Any]) -> Any:
        there = [value for value, times in state if times > 0]
        return there[0] if len(there) == 1 else None

    return Aggregate(
        [],
        add=lambda state, value: changed(state, value, 1),
        remove=lambda state, value: changed(state, value, -1),
        merge=merge,
        finish=finish,
    )


def _topk_type(types: tuple[SqlType, ...]) -> SqlType:
    if len(types) <= 2:
        return t.array(types[0])
    others = ((f"col{number}", type_) for number, type_ in enumerate(types[1:-1]))
    return t.array(t.struct(("sort_col", types[0]), *others))


@aggregate(
    "TOPK",
    *(
        f"{kind} val, ANY... others, INTEGER k -> ARRAY<ANY>"
        for kind in ("INTEGER", "BIGINT", "DOUBLE", "STRING")
    ),
    about="Returns the top k values for a column and other values in those records.",
    parameters=1,
    result=_topk_type,
)
def topk(binding: Binding) -> Aggregate:
    size = int(binding.parameters[0])
    key = order_key(binding.types[0])
    alone = len(binding.types) <= 2
    of_state: Callable[[Any], Any] = key if alone else lambda entry: key(entry["sort_col"])

    def add(state: list[Any], value: Any, *others: Any) -> list[Any]:
        if value is None or (len(state) == size and (not size or key(value) <= of_state(state[-1]))):
            return state
        entry = value if alone else {"sort_col": value, **{f"col{n}": each for n, each in enumerate(others)}}
        kept = state[:-1] if len(state) == size else state
        return sorted([*kept, entry], key=of_state, reverse=True)

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        return sorted(one + other, key=of_state, reverse=True)[:size]

    return Aggregate([], add=add, merge=merge)


_COMPARABLE: Final = (
    "INTEGER",
    "BIGINT",
    "DOUBLE",
    "STRING",
    "DECIMAL",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "BYTES",
)


@aggregate(
    "TOPKDISTINCT",
    *(f"{kind} val, INTEGER k -> ARRAY<{kind}>" for kind in _COMPARABLE),
    about="Computes the top k distinct values for a column, per key.",
    parameters=1,
    result=_list_of_first,
)
def topk_distinct(binding: Binding) -> Aggregate:
    size = int(binding.parameters[0])
    key = order_key(binding.types[0])

    def add(state: list[Any], value: Any) -> list[Any]:
        if (
            value is None
            or value in state
            or (len(state) == size and (not size or key(value) <= key(state[-1])))
        ):
            return state
        kept = state[:-1] if len(state) == size else state
        return sorted([*kept, value], key=key, reverse=True)

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        return sorted([*one, *(each for each in other if each not in one)], key=key, reverse=True)[:size]

    return Aggregate([], add=add, merge=merge)


class _Sequence:
    """Numbers in the order in which rows came. It goes on behind the largest number that a state has brought along."""

    def __init__(self) -> None:
        self._next = 0

    def after(self, *seen: int) -> int:
        number = max((self._next, *(each + 1 for each in seen)))
        self._next = number + 1
        return number


def _offset_parameters(binding: Binding, name: str) -> tuple[int | None, bool]:
    """How many, and whether NULLs are left out."""
    how_many, ignore_nulls = None, True
    for each in binding.parameters:
        if isinstance(each, bool):
            ignore_nulls = each
        else:
            how_many = int(each)
    if how_many is not None and how_many <= 0:
        raise TypeRefused(f"{name} must be 1 or greater")
    return how_many, ignore_nulls


def _one_state(types: tuple[SqlType, ...]) -> SqlType:
    return t.struct(("SEQ", t.BIGINT), ("VAL", types[0]))


def _many_state(types: tuple[SqlType, ...]) -> SqlType:
    return t.array(_one_state(types))


def _by_offset(binding: Binding, name: str, is_latest: bool) -> Aggregate:
    """State of one: [number, value] or None; of several: a list of them, oldest first."""
    how_many, ignore_nulls = _offset_parameters(binding, name)
    sequence = _Sequence()

    def add_one(state: list[Any] | None, value: Any) -> list[Any] | None:
        if (value is None and ignore_nulls) or (state is not None and not is_latest):
            return state
        return [sequence.after() if state is None else sequence.after(state[0]), value]

    def merge_one(one: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
        if one is None or other is None:
            return one if other is None else other
        return (
            max(one, other, key=lambda each: each[0])
            if is_latest
            else min(one, other, key=lambda each: each[0])
        )

    if how_many is None:
        return Aggregate(
            None, add=add_one, merge=merge_one, finish=lambda state: None if state is None else state[1]
        )

    def add_many(state: list[Any], value: Any) -> list[Any]:
        if (value is None and ignore_nulls) or (len(state) >= how_many and not is_latest):
            return state
        entry = [sequence.after(*(number for number, _ in state)), value]
        return [*state, entry][-how_many:]

    def merge_many(one: list[Any], other: list[Any]) -> list[Any]:
        return sorted(one + other, key=lambda each: each[0])[:how_many]

    return Aggregate([], add=add_many, merge=merge_many, finish=lambda state: [value for _, value in state])


def _declare_by_offset(name: str, about: str, is_latest: bool) -> None:
    short = "latestN" if is_latest else "earliestN"

    def make(binding: Binding) -> Aggregate:
        return _by_offset(binding, short, is_latest)

    aggregate(name, "T val -> T", about=about, state=_one_state)(make)
    aggregate(name, "T val, BOOLEAN ignoreNulls -> T", about=about, parameters=1, state=_one_state)(make)
    aggregate(name, f"T val, INTEGER {short} -> ARRAY<T>", about=about, parameters=1, state=_many_state)(make)
    both = f"T val, INTEGER {short}, BOOLEAN ignoreNulls -> ARRAY<T>"
    aggregate(name, both, about=about, parameters=2, state=_many_state)(make)


_declare_by_offset(
    "EARLIEST_BY_OFFSET", "This function returns the oldest N values for the column, by offset.", False
)
_declare_by_offset(
    "LATEST_BY_OFFSET", "This function returns the newest N values for the column, by offset.", True
)
