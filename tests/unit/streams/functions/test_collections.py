"""Functions of arrays, maps, lambdas, JSON and URLs, by SQL text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.streams.functions.java_maps import java_order
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.tables import find
from tests.unit.streams.functions.evaluating import FAILS, value_of

NONE = "CAST(NULL AS ARRAY<INT>)"
NO_MAP = "CAST(NULL AS MAP<STRING, INT>)"
URL = "'https://user:pw@docs.confluent.io:8080/current/a%20b?a=1&b=x%20y&c#frag%21'"

ARRAYS: list[tuple[str, Any]] = [
    ("ARRAY_LENGTH(ARRAY[1, NULL])", 2),
    (f"ARRAY_LENGTH({NONE})", None),
    ("ARRAY_CONTAINS(ARRAY[1, NULL], CAST(NULL AS INT))", True),
    (f"ARRAY_CONTAINS({NONE}, 1)", False),
    ("ARRAY_CONCAT(ARRAY[1], ARRAY[2, 1])", [1, 2, 1]),
    (f"ARRAY_CONCAT(ARRAY[1], {NONE})", [1]),
    (f"ARRAY_CONCAT({NONE}, {NONE})", None),
    ("ARRAY_DISTINCT(ARRAY[2, 1, NULL, 2, NULL])", [2, 1, None]),
    ("ARRAY_DISTINCT(ARRAY[ARRAY[1], ARRAY[1]])", [[1]]),
    ("ARRAY_UNION(ARRAY[2, 1], ARRAY[1, 3, NULL])", [2, 1, 3, None]),
    ("ARRAY_INTERSECT(ARRAY[3, 1, 1, 2], ARRAY[1, 3])", [3, 1]),
    ("ARRAY_EXCEPT(ARRAY[3, 1, 3, 2], ARRAY[1])", [3, 2]),
    (f"ARRAY_EXCEPT(ARRAY[3], {NONE})", None),
    ("ARRAY_REMOVE(ARRAY[1, 2, NULL, 1], 1)", [2, None]),
    ("ARRAY_REMOVE(ARRAY[1, NULL], CAST(NULL AS INT))", [1]),
    ("ARRAY_MAX(ARRAY[1, NULL, 3])", 3),
    ("ARRAY_MIN(ARRAY[CAST(NULL AS INT)])", None),
    ("ARRAY_SORT(ARRAY[3, NULL, 1])", [1, 3, None]),
    ("ARRAY_SORT(ARRAY[3, NULL, 1], 'desc')", [3, 1, None]),
    ("ARRAY_SORT(ARRAY[3], 'sideways')", None),
    ("ARRAY_JOIN(ARRAY[1, NULL, 3])", "1,null,3"),
    ("ARRAY_JOIN(ARRAY[1e0, 2.5e0], ' & ')", "1.0 & 2.5"),
    ("ARRAY_JOIN(ARRAY['a', 'b'], CAST(NULL AS STRING))", "ab"),
    ("ARRAY_JOIN(ARRAY[ARRAY[1]])", FAILS),
    ("SLICE(ARRAY[1, 2, 3], 2, 3)", [2, 3]),
    ("SLICE(ARRAY[1, 2, 3], NULL, 2)", [1, 2]),
    ("SLICE(ARRAY[1, 2, 3], 0, 2)", None),
    ("SLICE(ARRAY[1, 2, 3], 2, 4)", None),
    ("SLICE(ARRAY[1, 2, 3], 3, 2)", []),
    ("SLICE(ARRAY[1, 2, 3], 3, 1)", None),
    ("GENERATE_SERIES(1, 5)", [1, 2, 3, 4, 5]),
    ("GENERATE_SERIES(5, 1, -2)", [5, 3, 1]),
    ("GENERATE_SERIES(2, 2)", [2]),
    ("GENERATE_SERIES(1, 5, -1)", FAILS),
    ("GENERATE_SERIES(1, 5, 0)", FAILS),
    ("GENERATE_SERIES(1, 2000000000)", FAILS),
    ("ENTRIES(MAP('b' := 1, 'a' := 2), TRUE)", [{"K": "a", "V": 2}, {"K": "b", "V": 1}]),
    ("AS_MAP(ARRAY['a', 'b'], ARRAY[1])", {"a": 1, "b": None}),
    ("MAP_KEYS(MAP('b' := 1, 'a' := 2))", ["a", "b"]),
    ("MAP_VALUES(MAP('b' := 1, 'a' := 2))", [2, 1]),
    ("MAP_UNION(MAP('a' := 1, 'b' := 2), MAP('b' := 3))", {"a": 1, "b": 3}),
    (f"MAP_UNION(MAP('a' := 1), {NO_MAP})", {"a": 1}),
    (f"MAP_UNION({NO_MAP}, {NO_MAP})", None),
    ("MAP('a' := 1)['b']", None),
    ("ARRAY[1, 2][0]", None),
    ("STRUCT(A := 1)->A", 1),
]

LAMBDAS: list[tuple[str, Any]] = [
    ("TRANSFORM(ARRAY[1, 2], x => x * 2)", [2, 4]),
    ("TRANSFORM(ARRAY[1, NULL], x => x * 2)", FAILS),
    (f"TRANSFORM({NONE}, x => x * 2)", None),
    ("TRANSFORM(MAP('a' := 1), (k, v) => UCASE(k), (k, v) => v + 1)", {"A": 2}),
    ("TRANSFORM(MAP('a' := 1, 'b' := 2), (k, v) => 'same', (k, v) => v)", FAILS),
    ("TRANSFORM(ARRAY[ARRAY[1, 2], ARRAY[3]], x => REDUCE(x, 0, (s, y) => s + y + ARRAY_LENGTH(x)))", [7, 4]),
    (
        "TRANSFORM(ARRAY[1, 2], x => REDUCE(TRANSFORM(ARRAY[10, x], x => x + 1), 0, (s, y) => s + y * x))",
        [13, 28],
    ),
    ("FILTER(ARRAY[1, 2, NULL], x => x > 1)", [2]),
    ("FILTER(MAP('a' := 1, 'b' := 2), (k, v) => v > 1 AND k <> 'a')", {"b": 2}),
    ("REDUCE(ARRAY[1, 2, 3], 10, (s, x) => s - x)", 4),
    ("REDUCE(ARRAY[1], CAST(NULL AS INT), (s, x) => s - x)", None),
    (f"REDUCE({NONE}, 10, (s, x) => s - x)", 10),
    ("REDUCE(GENERATE_SERIES(1, 60), 'x', (s, x) => s + s)", FAILS),
    ("REDUCE(MAP('a' := 1, 'b' := 2), '', (s, k, v) => CONCAT(s, k, CAST(v AS STRING)))", "a1b2"),
]

DOCUMENT = """'{"a": {"b": [1, 2.50, "x", null]}, "c d": "e"}'"""
JSON: list[tuple[str, Any]] = [
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$.a.b[1]')", "2.50"),
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$.a')", '{"b":[1,2.50,"x",null]}'),
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$[\"c d\"]')", "e"),
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$.a.b[3]')", "null"),
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$.a.b[4]')", None),
    (f"EXTRACTJSONFIELD({DOCUMENT}, '$.x.y')", None),
    (f"EXTRACTJSONFIELD({DOCUMENT}, 'a')", FAILS),
    ("EXTRACTJSONFIELD('{', '$.a')", FAILS),
    ("EXTRACTJSONFIELD('{\"a\": 1} and more', '$.a')", "1"),
    ("IS_JSON_STRING('[1, 2]')", True),
    ("IS_JSON_STRING('')", False),
    ("IS_JSON_STRING('abc')", False),
    ("IS_JSON_STRING('NaN')", False),
    ("IS_JSON_STRING(CAST(NULL AS STRING))", False),
    ("JSON_ARRAY_LENGTH('[1, 2, 3]')", 3),
    ("JSON_ARRAY_LENGTH('{}')", None),
    ('JSON_KEYS(\'{"b": 1, "a": 2}\')', ["b", "a"]),
    ("JSON_KEYS('[]')", None),
    ('JSON_RECORDS(\'{"a": 1.0, "b": "x", "c": null}\')', {"a": "1.0", "b": "x", "c": "null"}),
    ('JSON_ITEMS(\'[1, "a", {"x": 1}]\')', ["1", '"a"', '{"x":1}']),
    ("JSON_ITEMS('{}')", FAILS),
    ('JSON_CONCAT(\'{"a": 1}\', \'{"a": 2, "b": 1.50}\')', '{"a":2,"b":1.50}'),
    ("JSON_CONCAT('[1]', '2', '{\"a\": 1e2}')", '[1,2,{"a":100}]'),
    ("JSON_CONCAT('1', CAST(NULL AS STRING))", None),
    ("JSON_ARRAY_CONTAINS('[1, 2, 3]', 3)", True),
    ("JSON_ARRAY_CONTAINS('[1.5, true]', 1.5e0)", True),
    ("JSON_ARRAY_CONTAINS('[1]', 1e0)", False),
    ("JSON_ARRAY_CONTAINS('[null]', CAST(NULL AS STRING))", True),
    ("JSON_ARRAY_CONTAINS('[\"1\"]', 1)", False),
    ("JSON_ARRAY_CONTAINS('{', 1)", False),
    (
        "TO_JSON_STRING(STRUCT(b := 1, a := ARRAY[1.50, NULL], c := MAP('x' := TRUE)))",
        '{"A":[1.50,null],"B":1,"C":{"x":true}}',
    ),
    ("TO_JSON_STRING(CAST(NULL AS INT))", "null"),
    ("TO_JSON_STRING('a\"b' + CHR(10) + 'é')", '"a\\"b\\né"'),
    ("TO_JSON_STRING(CAST('2020-01-01' AS DATE))", '"2020-01-01"'),
    ("TO_JSON_STRING(TO_BYTES('a', 'utf8'))", '"YQ=="'),
    ("TO_JSON_STRING(1e10)", "1.0E10"),
]

URLS: list[tuple[str, Any]] = [
    (f"URL_EXTRACT_PROTOCOL({URL})", "https"),
    (f"URL_EXTRACT_HOST({URL})", "docs.confluent.io"),
    (f"URL_EXTRACT_PORT({URL})", 8080),
    (f"URL_EXTRACT_PATH({URL})", "/current/a b"),
    (f"URL_EXTRACT_QUERY({URL})", "a=1&b=x y&c"),
    (f"URL_EXTRACT_FRAGMENT({URL})", "frag!"),
    (f"URL_EXTRACT_PARAMETER({URL}, 'b')", "x y"),
    (f"URL_EXTRACT_PARAMETER({URL}, 'c')", ""),
    (f"URL_EXTRACT_PARAMETER({URL}, 'd')", None),
    ("URL_EXTRACT_PORT('http://x.y')", None),
    ("URL_EXTRACT_PATH('http://x.y')", ""),
    ("URL_EXTRACT_HOST('mailto:a@b.c')", None),
    ("URL_EXTRACT_PROTOCOL('mailto:a@b.c')", "mailto"),
    ("URL_EXTRACT_HOST('http://[::1]:80/')", "[::1]"),
    ("URL_EXTRACT_HOST('http://under_score.x/')", None),
    ("URL_EXTRACT_HOST('no spaces here')", FAILS),
    ("URL_EXTRACT_HOST('//h]')", FAILS),
    ("URL_EXTRACT_HOST('http://a/%zz')", FAILS),
    ("URL_EXTRACT_HOST(CAST(NULL AS STRING))", None),
    ("URL_ENCODE_PARAM('?foo $bar*~é')", "%3Ffoo+%24bar*%7E%C3%A9"),
    ("URL_DECODE_PARAM('%3Ffoo+%24bar%C3%A9')", "?foo $baré"),
    ("URL_DECODE_PARAM('%3')", FAILS),
]


@pytest.mark.parametrize(
    ("text", "wanted"), ARRAYS + LAMBDAS + JSON + URLS, ids=lambda value: str(value)[:70]
)
def test_functions_of_collections_json_and_urls(text: str, wanted: Any) -> None:
    assert value_of(text) == wanted


@pytest.mark.parametrize(
    ("keys", "ordered"),
    [  # what Java says for `new HashMap<>(n)`
        (["foo", "bar", "baz"], ["bar", "baz", "foo"]),
        (["one", "two", "three", "four"], ["two", "three", "four", "one"]),
        (["apple", "banana"], ["banana", "apple"]),
        (["key1", "key2", "key3", "key4", "key5"], ["key1", "key2", "key5", "key3", "key4"]),
    ],
)
def test_keys_have_the_order_of_a_java_map(keys: list[str], ordered: list[str]) -> None:
    assert java_order(keys) == ordered


def test_table_functions_give_lists() -> None:
    explode, cube = (find(name) for name in ("EXPLODE", "CUBE_EXPLODE"))
    assert explode is not None
    assert cube is not None
    assert explode.overloads[0].run(None) == []
    assert explode.overloads[0].run([Decimal(1), None]) == [Decimal(1), None]
    run = cube.overloads[0].run
    assert run([1, 2]) == [[None, None], [None, 2], [1, None], [1, 2]]
    assert run([1, None]) == [[None, None], [1, None]]
    assert run(None) == []
    with pytest.raises(FunctionFailed, match="too many columns"):
        run(list(range(21)))


@pytest.mark.parametrize(
    "text", ["MAP('a' := 1)[ARRAY['a']]", "MAP('a' := 1)[MAP('a' := 1)]", "MAP(STRUCT(a := 1) := 1)"]
)
def test_the_keys_of_maps_are_simple_values(text: str) -> None:
    with pytest.raises(TypeRefused, match="key of"):
        value_of(text)


def test_the_index_of_an_array_is_a_whole_number() -> None:
    with pytest.raises(TypeRefused, match="The index of an array is an INTEGER, not DECIMAL"):
        value_of("ARRAY[1][1.5]")
