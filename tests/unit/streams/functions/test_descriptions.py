"""What is told about functions, and how an overload is chosen."""

from __future__ import annotations

import pytest

from penstock.sql.parsing.parser import parse_expression
from penstock.streams.functions.descriptions import FunctionKind, describe, described
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.signatures import parse
from penstock.streams.functions.typing import type_of
from penstock.streams.plan import types as t

COLUMNS = {
    "I": t.INTEGER,
    "L": t.BIGINT,
    "D": t.DOUBLE,
    "N": t.decimal(4, 2),
    "S": t.STRING,
    "A": t.array(t.INTEGER),
}


def test_every_function_tells_what_it_does_and_takes() -> None:
    found = described()
    assert len(found) > 140
    assert {each.kind for each in found} == set(FunctionKind)
    for each in found:
        assert each.about, each.name
        assert each.signatures, each.name
        assert all(signature.return_type and signature.about for signature in each.signatures), each.name


def test_a_function_is_described() -> None:
    found = describe("lpad")
    assert found is not None
    assert (found.name, found.kind, found.category) == ("LPAD", FunctionKind.SCALAR, "STRING")
    first = found.signatures[0]
    assert [(each.name, each.type) for each in first.arguments] == [
        ("input", "VARCHAR"),
        ("targetLen", "INT"),
        ("padding", "VARCHAR"),
    ]
    assert first.return_type == "VARCHAR"
    variadic = describe("concat")
    assert variadic is not None
    assert variadic.signatures[0].arguments[0].is_variadic
    assert describe("nope") is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ARRAY<T> items, T... more -> ARRAY<T>", ["ARRAY<T> items", "T... more", "ARRAY<T>"]),
        (
            "MAP<K, V> map, LAMBDA (K, V) => R f -> MAP<R, V>",
            ["MAP<K, V> map", "LAMBDA (K, V) => R f", "MAP<R, V>"],
        ),
        ("STRUCT<K STRING, V INTEGER> s -> BIGINT", ["STRUCT<K VARCHAR, V INT> s", "BIGINT"]),
        ("UNIT u -> DOUBLE", ["INTERVAL UNIT u", "DOUBLE"]),
        ("-> DOUBLE", ["DOUBLE"]),
    ],
)
def test_signatures_are_read_and_shown(text: str, shown: list[str]) -> None:
    signature = parse(text)
    assert [*map(str, signature.parameters), str(signature.result)] == shown


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("ABS(N)", "DECIMAL(4, 2)"),
        ("ROUND(N)", "DECIMAL(2, 0)"),
        ("SIGN(N)", "INTEGER"),
        ("SQRT(I)", "DOUBLE"),
        ("SQRT(N)", "DOUBLE"),
        ("GREATEST(N, 1.234)", "DECIMAL(5, 3)"),
        ("CONCAT(S, NULL, 'x')", "STRING"),
        ("COALESCE(NULL, A)", "ARRAY<INTEGER>"),
        ("TRANSFORM(A, x => CAST(x AS STRING))", "ARRAY<STRING>"),
        ("REDUCE(A, L, (s, x) => s + x)", "BIGINT"),
        ("ENTRIES(MAP('a' := I), TRUE)", "ARRAY<STRUCT<`K` STRING, `V` INTEGER>>"),
        ("N * N", "DECIMAL(9, 4)"),
        ("N / I", "DECIMAL(15, 13)"),
        ("N % L", "DECIMAL(4, 2)"),
        ("N + D", "DOUBLE"),
        ("I + L", "BIGINT"),
        ("ARRAY[1, L, N]", "ARRAY<DECIMAL(21, 2)>"),
        ("ARRAY[1, '2.5']", "ARRAY<DECIMAL(11, 1)>"),
        ("MAP('a' := 1, 'b' := NULL)", "MAP<STRING, INTEGER>"),
        ("S LIKE 'a%'", "BOOLEAN"),
    ],
)
def test_expressions_have_types(text: str, type_: str) -> None:
    assert str(type_of(parse_expression(text), COLUMNS.get)) == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "LPAD(S, S, S)",
            "Function 'LPad' does not accept parameters (STRING, STRING, STRING).\nValid alternatives are:\nLPad(",
        ),
        (
            "GREATEST(I, L)",
            "Function 'greatest' cannot be resolved due to ambiguous method parameters (INTEGER, BIGINT).",
        ),
        ("GREATEST(*)", "Function 'greatest' does not accept parameters ()."),
        ("REDUCE(A, L, (s, x) => 'x')", "Cannot map S to both BIGINT and STRING"),
        (
            "TRANSFORM(A, (x, y) => x)",
            "Function 'transform' does not accept parameters (ARRAY<INTEGER>, LAMBDA).",
        ),
        (
            "TRANSFORM(A, x => TRANSFORM(ARRAY['a'], x => x))",
            "Could not map type STRING to lambda variable X, X was already mapped to INTEGER",
        ),
        ("FILTER(A, x => x)", "do not have the same schema structure"),
        ("ARRAY[]", "Array constructor cannot be empty."),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("MAP(NULL := 1)", "Cannot construct a map with all NULL keys"),
        ("STRUCT(a := 1, a := 2)", "Duplicate field names found in STRUCT"),
        ("S[1]", "Subscript expression (S[1]) do not apply to STRING."),
        ("CAST(A AS DECIMAL(3, 1))", "Cast of ARRAY<INTEGER> to DECIMAL(3, 1) is not supported"),
        ("CAST(I AS DECIMAL(1000000000, 2))", "DECIMAL precision must be <= 10000"),
        ("I = 'a'", "Cannot compare I (INTEGER) to 'a' (STRING) with EQUAL."),
        ("A > A", "with GREATER_THAN."),
        ("NOT I", "AND, OR and NOT take BOOLEAN"),
    ],
)
def test_what_does_not_fit_is_refused_in_ksqldbs_words(text: str, message: str) -> None:
    with pytest.raises(TypeRefused) as refused:
        type_of(parse_expression(text), COLUMNS.get)
    assert message in refused.value.message


@pytest.mark.parametrize("text", ["CAST(A AS INT)", "I IN ('x')", "S LIKE 5", "I BETWEEN 1 AND 'x'"])
def test_what_ksqldb_finds_late_says_so(text: str) -> None:
    with pytest.raises(TypeRefused) as refused:
        type_of(parse_expression(text), COLUMNS.get)
    assert refused.value.is_late
