"""Expressions as functions over rows: values, NULL rules, overflow, failures."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.compiling import column_types, compile_items, compile_predicate, evaluate
from penstock.streams.kernel.records import Row
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.schema import Column, Schema

SCHEMA = Schema(
    (Column("K", t.STRING),),
    (
        Column("I", t.INTEGER),
        Column("L", t.BIGINT),
        Column("D", t.DOUBLE),
        Column("N", t.decimal(5, 2)),
        Column("S", t.STRING),
        Column("B", t.BOOLEAN),
        Column("A", t.array(t.INTEGER)),
        Column("M", t.map_of(t.STRING, t.INTEGER)),
        Column("R", t.struct(("F", t.INTEGER))),
        Column("DT", t.DATE),
        Column("TS", t.TIMESTAMP),
    ),
)
INT, L, D, N, S, B, A, M, R = (e.ColumnRef(name) for name in "ILDNSBAMR")
FULL = Row(
    ("k",),
    (7, 5, 2.5, Decimal("1.50"), "abc", True, [1, 2], {"x": 1}, {"F": 3}, 1, 86_400_000),
    99,
    window=(10, 20),
)
EMPTY = Row(("k",), None, 99)


def lit(value: Any) -> e.Literal:
    types = {bool: t.BOOLEAN, int: t.INTEGER, float: t.DOUBLE, str: t.STRING}
    return e.Literal(value, None if value is None else types[type(value)])


def values(*items: e.Expression, row: Row = FULL) -> tuple[Any, ...]:
    return compile_items(items, SCHEMA)(row)


INT_MAX = e.Literal(2**31 - 1, t.INTEGER)


@pytest.mark.parametrize(
    ("expression", "full", "empty"),
    [
        (e.Arithmetic("+", INT, lit(2)), 9, None),
        (e.Arithmetic("+", INT_MAX, lit(1)), -(2**31), -(2**31)),
        (e.Arithmetic("*", INT_MAX, L), (2**31 - 1) * 5, None),
        (e.Arithmetic("/", e.Negative(INT), lit(2)), -3, None),
        (e.Arithmetic("%", e.Negative(INT), lit(2)), -1, None),
        (e.Arithmetic("/", INT, lit(0)), None, None),
        (e.Arithmetic("/", D, lit(0)), math.inf, None),
        (e.Arithmetic("*", N, INT), Decimal("10.50"), None),
        (e.Arithmetic("/", N, lit(4)), Decimal("0.3750000000000"), None),
        (e.Arithmetic("+", S, lit("d")), "abcd", None),
        (e.Comparison("=", INT, lit(7)), True, False),
        (e.Not(e.Comparison("=", INT, lit(7))), False, True),
        (e.Comparison("<", N, D), True, False),
        (e.Comparison("IS DISTINCT FROM", INT, L), True, False),
        (e.Comparison("IS NOT DISTINCT FROM", e.Arithmetic("+", INT, L), lit(12)), True, None),
        (e.Comparison("=", e.ColumnRef("DT"), e.ColumnRef("TS")), True, False),
        (e.Comparison("=", e.ColumnRef("TS"), lit("1970-01-02")), True, False),
        (e.Between(e.Arithmetic("+", INT, lit(0)), lit(7), lit(8)), True, None),
        (e.Between(INT, lit(8), lit(9), negated=True), True, True),
        (e.In(INT, (lit("7"), lit(None))), True, False),
        (e.In(S, (S, lit("z"))), True, False),
        (e.Like(S, lit("a%c")), True, None),
        (e.Like(S, lit("a__")), True, None),
        (e.Like(lit("a%c"), lit("a!%c"), "!"), True, True),
        (e.Logical("AND", B, lit(True)), True, None),
        (e.Logical("OR", lit(True), B), True, True),
        (e.IsNull(S), False, True),
        (e.IsNull(lit(5), negated=True), True, True),
        (e.Case(None, ((e.Comparison(">", INT, lit(1)), S),), lit("none")), "abc", "none"),
        (e.Case(e.Arithmetic("+", INT, lit(1)), ((lit(8), lit("eight")),), None), "eight", None),
        (e.MakeArray((INT, lit("5"))), [7, 5], [None, 5]),
        (e.MakeMap(((lit("k"), INT),)), {"k": 7}, {"k": None}),
        (e.MakeStruct((("X", INT),)), {"X": 7}, {"X": None}),
        (e.Subscript(A, lit(-1)), 2, None),
        (e.Subscript(A, lit(3)), None, None),
        (e.Subscript(M, lit("x")), 1, None),
        (e.FieldOf(R, "F"), 3, None),
        (e.ColumnRef("ROWTIME"), 99, 99),
        (e.ColumnRef("WINDOWEND"), 20, None),
        (e.ColumnRef("K"), "k", "k"),
        (e.PythonCall(lambda value: value, (INT,), t.INTEGER), 7, None),
    ],
    ids=str,
)
def test_values_are_those_of_ksqldb(expression: e.Expression, full: Any, empty: Any) -> None:
    assert values(expression) == (full,)
    assert values(expression, row=EMPTY) == (empty,)


def test_a_failing_item_is_null_and_told() -> None:
    told: list[tuple[str, str]] = []
    items = [INT, e.Arithmetic("/", INT, lit(0)), S]
    project = compile_items(items, SCHEMA, lambda item, row, error: told.append((str(item), str(error))))
    assert project(FULL) == (7, None, "abc")
    assert told == [("(I / 0)", "/ by zero")]


def test_a_predicate_is_only_true_for_true() -> None:
    assert compile_predicate(B, SCHEMA)(FULL) is True
    assert compile_predicate(B, SCHEMA)(EMPTY) is False
    assert compile_predicate(e.Comparison(">", e.Arithmetic("/", INT, lit(0)), lit(1)), SCHEMA)(FULL) is False
    with pytest.raises(TypeRefused):
        compile_predicate(INT, SCHEMA)


def test_a_long_sum_is_no_trouble() -> None:
    total: e.Expression = lit(1)
    for _ in range(200):
        total = e.Arithmetic("+", total, INT)
    assert values(total) == (1 + 7 * 200,)


def test_what_is_nested_without_end_is_refused() -> None:
    total: e.Expression = lit(1)
    for _ in range(20_000):
        total = e.Arithmetic("+", total, INT)
    with pytest.raises(TypeRefused, match="nested too deeply"):
        type_of(total, column_types(SCHEMA))
    with pytest.raises(TypeRefused, match="nested too deeply"):
        compile_items([total], SCHEMA)


def test_what_has_no_columns_is_evaluated_at_once() -> None:
    assert evaluate(e.Arithmetic("+", lit(1), lit(2))) == 3
    with pytest.raises(Exception, match="by zero"):
        evaluate(e.Arithmetic("/", lit(1), lit(0)))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (e.ColumnRef("NOPE"), "Unknown column NOPE."),
        (e.Comparison("=", INT, lit(None)), "Comparison with NULL not supported: INTEGER = NULL"),
        (e.Comparison("=", INT, S), "Cannot compare I (INTEGER) to S (STRING) with EQUAL."),
        (
            e.Arithmetic("*", INT, S),
            "Error processing expression: (I * S). Unsupported arithmetic types. INTEGER STRING",
        ),
        (e.Case(None, ((B, lit(1)), (B, lit("x"))), None), "Type for all 'THEN' clauses should be the same."),
        (e.Case(None, ((B, lit(None)),), None), "Invalid Case expression. All case branches have NULL type"),
        (e.FieldOf(R, "G"), "Could not find field 'G' in 'R'."),
        (e.Cast(A, t.INTEGER), "Cast of ARRAY<INTEGER> to INTEGER is not supported"),
        (e.MakeArray((INT, S)), "operator does not exist: INTEGER = STRING (S)"),
        (e.In(B, (lit("perhaps"),)), 'invalid input syntax for type BOOLEAN: "perhaps".'),
        (e.Call("NOPE", ()), "Can't find any functions with the name 'NOPE'"),
        (e.Call("ABS", (S,)), "Function 'Abs' does not accept parameters (STRING)."),
        (
            e.Call("ABS", (lit(None),)),
            "Function 'Abs' cannot be resolved due to ambiguous method parameters (null).",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(expression: e.Expression, message: str) -> None:
    with pytest.raises(TypeRefused) as refused:
        type_of(expression, column_types(SCHEMA))
    assert message in refused.value.message
