"""Arrays and maps, and the functions with lambdas over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from penstock.streams.functions import java_text
from penstock.streams.functions.comparing import order_key
from penstock.streams.functions.java_maps import java_order
from penstock.streams.functions.operators import truth
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar
from penstock.streams.functions.signatures import Argument
from penstock.streams.plan.types import Kind, SqlType

_ARRAY: Final = "ARRAY"
_MAP: Final = "MAP"
_LAMBDA: Final = "LAMBDA"
MAX_SERIES: Final = 1_000_000
MAX_STATE: Final = 16 * 1024 * 1024
Item = TypeVar("Item")


def identity_of(value: Any) -> Any:
    """Something hashable that is equal for equal values."""
    match value:
        case list():
            return ("list", *(identity_of(each) for each in value))
        case dict():
            return ("map", frozenset((identity_of(key), identity_of(each)) for key, each in value.items()))
        case _:
            return value


def _unique(items: Iterable[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(identity_of(item), item)
    return found


@scalar(
    "ARRAY_LENGTH",
    "ARRAY<T> array -> INTEGER",
    category=_ARRAY,
    about="Returns the number of elements of an array.",
)
def array_length(items: list[Any]) -> int:
    return len(items)


@scalar(
    "ARRAY_CONTAINS",
    "ARRAY<T> array, T val -> BOOLEAN",
    category=_ARRAY,
    nulls="own",
    about="Returns true if the array is non-null and contains the supplied value.",
)
def array_contains(items: list[Any] | None, value: Any) -> bool:
    return items is not None and value in items


@scalar(
    "ARRAY_CONCAT",
    "ARRAY<T> left, ARRAY<T> right -> ARRAY<T>",
    category=_ARRAY,
    nulls="own",
    about="Concatenates two arrays; if one is NULL, the result is the other.",
)
def array_concat(left: list[Item] | None, right: list[Item] | None) -> list[Item] | None:
    return None if left is None and right is None else [*(left or ()), *(right or ())]


@scalar(
    "ARRAY_DISTINCT",
    "ARRAY<T> array -> ARRAY<T>",
    category=_ARRAY,
    about="The distinct values, in the order in which they first occur.",
)
def array_distinct(items: list[Item]) -> list[Item]:
    return list(_unique(items).values())


@scalar(
    "ARRAY_UNION",
    "ARRAY<T> left, ARRAY<T> right -> ARRAY<T>",
    category=_ARRAY,
    about="The distinct values of both arrays.",
)
def array_union(left: list[Item], right: list[Item]) -> list[Item]:
    return list(_unique([*left, *right]).values())


@scalar(
    "ARRAY_EXCEPT",
    "ARRAY<T> left, ARRAY<T> right -> ARRAY<T>",
    category=_ARRAY,
    about="The distinct values that are only in the first array.",
)
def array_except(left: list[Item], right: list[Item]) -> list[Item]:
    away = _unique(right)
    return [item for key, item in _unique(left).items() if key not in away]


@scalar(
    "ARRAY_INTERSECT",
    "ARRAY<T> left, ARRAY<T> right -> ARRAY<T>",
    category=_ARRAY,
    about="The distinct values that are in both arrays.",
)
def array_intersect(left: list[Item], right: list[Item]) -> list[Item]:
    wanted = _unique(right)
    return [item for key, item in _unique(left).items() if key in wanted]


@scalar(
    "ARRAY_REMOVE",
    "ARRAY<T> array, T victim -> ARRAY<T>",
    category=_ARRAY,
    nulls="own",
    about="Removes all elements that are equal to the second argument.",
)
def array_remove(items: list[Item] | None, victim: Any) -> list[Item] | None:
    return None if items is None else [item for item in items if item != victim]


_JOINABLE: Final = (Kind.BOOLEAN, Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.STRING)


@scalar(
    "ARRAY_JOIN",
    "ARRAY<T> array -> STRING",
    "ARRAY<T> array, STRING delimiter -> STRING",
    category=_ARRAY,
    nulls="own",
    bound=True,
    about="Joins the array elements into a flat string with a delimiter, which is ',' if there is none.",
)
def array_join(arguments: tuple[Argument, ...], result: SqlType) -> Callable[..., str | None]:
    first = arguments[0]
    element = first.element if isinstance(first, SqlType) else None

    def text_of(item: Any) -> str:
        if item is None:
            return "null"
        if element is None or element.kind not in _JOINABLE:
            raise FunctionFailed(f"error: hit element of type {element} which is currently not supported")
        return (
            java_text.decimal_text(item) if element.kind is Kind.DECIMAL else java_text.text_of(item, element)
        )

    def join(items: list[Any] | None, delimiter: str | None = ",") -> str | None:
        return None if items is None else (delimiter or "").join(text_of(item) for item in items)

    return join


def _element(arguments: tuple[Argument, ...]) -> SqlType:
    first = arguments[0]
    assert isinstance(first, SqlType)
    assert first.element is not None
    return first.element


def _extreme(choose: Callable[..., Any]) -> Callable[[tuple[Argument, ...], SqlType], Callable[..., Any]]:
    def bound(arguments: tuple[Argument, ...], result: SqlType) -> Callable[[list[Any]], Any]:
        key = order_key(result)

        def run(items: list[Any]) -> Any:
            there = [item for item in items if item is not None]
            return choose(there, key=key) if there else None

        return run

    return bound


scalar(
    "ARRAY_MAX",
    "ARRAY<T> array -> T",
    category=_ARRAY,
    bound=True,
    about="The largest value of an array; NULLs do not count.",
)(_extreme(max))
scalar(
    "ARRAY_MIN",
    "ARRAY<T> array -> T",
    category=_ARRAY,
    bound=True,
    about="The smallest value of an array; NULLs do not count.",
)(_extreme(min))


@scalar(
    "ARRAY_SORT",
    "ARRAY<T> array -> ARRAY<T>",
    "ARRAY<T> array, STRING direction -> ARRAY<T>",
    category=_ARRAY,
    bound=True,
    about="Sort the elements of an array, 'ASC' or 'DESC'. NULLs come last.",
)
def array_sort(arguments: tuple[Argument, ...], result: SqlType) -> Callable[..., list[Any] | None]:
    key = order_key(_element(arguments)) if isinstance(arguments[0], SqlType) else order_key(result)

    def run(items: list[Any], direction: str = "ASC") -> list[Any] | None:
        word = direction.upper()
        if word not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
            return None
        there = sorted((item for item in items if item is not None), key=key, reverse=word.startswith("D"))
        return there + [None] * (len(items) - len(there))

    return run


@scalar(
    "SLICE",
    "ARRAY<T> in, INTEGER from, INTEGER to -> ARRAY<T>",
    category=_ARRAY,
    nulls="own",
    about="Slice of an array from one place to another, both included and counted from 1.",
)
def slice_(items: list[Item] | None, start: int | None, end: int | None) -> list[Item] | None:
    if items is None:
        return None
    first, last = 0 if start is None else start - 1, len(items) if end is None else end
    return items[first:last] if 0 <= first <= last <= len(items) else None


def _series(first: int, last: int, step: int | None = None) -> list[int]:
    if step is None:
        step = 1 if last > first else -1
    if not step:
        raise FunctionFailed("GENERATE_SERIES step cannot be zero")
    if (last > first and step < 0) or (last < first and step > 0):
        raise FunctionFailed("GENERATE_SERIES step has wrong sign")
    if abs(last - first) // abs(step) >= MAX_SERIES:
        raise FunctionFailed(f"GENERATE_SERIES gives no more than {MAX_SERIES} elements")
    return list(range(first, last + (1 if step > 0 else -1), step))


for _kind in ("INTEGER", "BIGINT"):
    scalar(
        "GENERATE_SERIES",
        f"{_kind} start, {_kind} end -> ARRAY<{_kind}>",
        f"{_kind} start, {_kind} end, INTEGER step -> ARRAY<{_kind}>",
        category=_ARRAY,
        about="Construct an array of a range of values.",
    )(_series)


@scalar(
    "ENTRIES",
    *(
        f"MAP<STRING, {kind}> map, BOOLEAN sorted -> ARRAY<STRUCT<K STRING, V {kind}>>"
        for kind in ("INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")
    ),
    category=_MAP,
    about="Construct an array from the entries in a map, sorted by key if wanted.",
)
def entries(mapping: dict[str, Any], is_sorted: bool) -> list[dict[str, Any]]:
    keys = sorted(mapping) if is_sorted else java_order(mapping)
    return [{"K": key, "V": mapping[key]} for key in keys]


@scalar(
    "AS_MAP",
    "ARRAY<STRING> keys, ARRAY<T> values -> MAP<STRING, T>",
    category=_MAP,
    about="Construct a map from a list of keys and one of values.",
)
def as_map(keys: list[str], values: list[Item]) -> dict[str, Item | None]:
    return {key: values[at] if at < len(values) else None for at, key in enumerate(keys)}


@scalar(
    "MAP_KEYS",
    "MAP<STRING, T> input -> ARRAY<STRING>",
    category=_MAP,
    about="Returns an array of all the keys of a map.",
)
def map_keys(mapping: dict[str, Any]) -> list[str]:
    return java_order(mapping)


@scalar(
    "MAP_VALUES",
    "MAP<STRING, T> input -> ARRAY<T>",
    category=_MAP,
    about="Returns an array of all the values of a map.",
)
def map_values(mapping: dict[str, Item]) -> list[Item]:
    return [mapping[key] for key in java_order(mapping)]


@scalar(
    "MAP_UNION",
    "MAP<STRING, T> map1, MAP<STRING, T> map2 -> MAP<STRING, T>",
    category=_MAP,
    nulls="own",
    about="Returns a map with the entries of both; of a key that both have, the second map's.",
)
def map_union(one: dict[str, Item] | None, other: dict[str, Item] | None) -> dict[str, Item] | None:
    return None if one is None and other is None else {**(one or {}), **(other or {})}


@scalar(
    "TRANSFORM",
    "ARRAY<T> array, LAMBDA (T) => R function -> ARRAY<R>",
    category=_LAMBDA,
    about="Apply a function to each element of a collection.",
)
def transform_array(items: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    return [function(item) for item in items]


@scalar("TRANSFORM", "MAP<K, V> map, LAMBDA (K, V) => R key, LAMBDA (K, V) => S value -> MAP<R, S>")
def transform_map(
    mapping: dict[Any, Any], of_key: Callable[[Any, Any], Any], of_value: Callable[[Any, Any], Any]
) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key in java_order(mapping):
        new, value = of_key(key, mapping[key]), of_value(key, mapping[key])
        if new in made:
            raise FunctionFailed(f"Duplicate key {new}")
        if value is None:
            raise FunctionFailed("TRANSFORM of a map gave a NULL value")
        made[new] = value
    return made


@scalar(
    "FILTER",
    "ARRAY<T> array, LAMBDA (T) => BOOLEAN function -> ARRAY<T>",
    category=_LAMBDA,
    about="Keep the elements of a collection for which the function gives true.",
)
def filter_array(items: list[Item], function: Callable[[Item], bool | None]) -> list[Item]:
    return [item for item in items if truth(function(item))]


@scalar("FILTER", "MAP<K, V> map, LAMBDA (K, V) => BOOLEAN function -> MAP<K, V>")
def filter_map(mapping: dict[Any, Any], function: Callable[[Any, Any], bool | None]) -> dict[Any, Any]:
    return {key: value for key, value in mapping.items() if truth(function(key, value))}


@scalar(
    "REDUCE",
    "ARRAY<T> array, S state, LAMBDA (S, T) => S function -> S",
    category=_LAMBDA,
    nulls="own",
    about="Reduce a collection to one value, from a first state on.",
)
def reduce_array(items: list[Any] | None, state: Any, function: Callable[[Any, Any], Any]) -> Any:
    if state is None:
        return None
    for item in items or ():
        state = _bounded(function(state, item))
    return state


def _bounded(state: Any) -> Any:
    """What doubles with each step does not grow for ever."""
    if isinstance(state, str | bytes | list | dict) and len(state) > MAX_STATE:
        raise FunctionFailed(f"The state of REDUCE is larger than {MAX_STATE}")
    return state


@scalar("REDUCE", "MAP<K, V> map, S state, LAMBDA (S, K, V) => S function -> S", nulls="own")
def reduce_map(mapping: dict[Any, Any] | None, state: Any, function: Callable[[Any, Any, Any], Any]) -> Any:
    if state is None:
        return None
    for key in java_order(mapping or {}):
        state = _bounded(function(state, key, (mapping or {})[key]))
    return state
