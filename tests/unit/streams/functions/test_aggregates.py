"""Aggregates: rows come in, are taken back, and states become one."""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from typing import Any

import pytest

from penstock.sql.parsing.parser import parse_expression
from penstock.streams.functions import aggregates
from penstock.streams.functions.aggregates import Aggregate, ResolvedAggregate, aggregate_for, resolve
from penstock.streams.functions.library.distinct import hash_of
from penstock.streams.functions.murmur import murmur2
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import AggregateCall

COLUMNS = {
    "I": t.INTEGER,
    "L": t.BIGINT,
    "D": t.DOUBLE,
    "N": t.decimal(4, 2),
    "S": t.STRING,
    "B": t.BYTES,
    "A": t.array(t.INTEGER),
    "DT": t.DATE,
}


def typed(expression: e.Expression) -> t.SqlType | None:
    return type_of(expression, COLUMNS.get)


def resolved(text: str) -> ResolvedAggregate:
    call = parse_expression(text)
    assert isinstance(call, e.Call)
    return resolve(call, typed)


def made(text: str, properties: dict[str, str] | None = None) -> Aggregate:
    found = resolved(text)
    call = AggregateCall(found.name, found.arguments, found.parameters, found.type)
    return aggregate_for(call, typed, properties)


def state_of(aggregate: Aggregate, *rows: Any) -> Any:
    state = aggregate.initial()
    for row in rows:
        before = copy.deepcopy(state)
        new = aggregate.add(state, *(row if isinstance(row, tuple) else (row,)))
        assert repr(state) == repr(before), "a state that is given in is never changed"
        state = new
    return state


def result_of(text: str, *rows: Any) -> Any:
    aggregate = made(text)
    return aggregate.result(state_of(aggregate, *rows))


RESULTS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("COUNT(*)", (1, 1), 2),
    ("COUNT(S)", ("a", None, "b"), 2),
    ("SUM(I)", (1, None, 2), 3),
    ("SUM(I)", (2**31 - 1, 1), -(2**31)),
    ("SUM(L)", (2**31 - 1, 1), 2**31),
    ("SUM(D)", (0.5, 1.0), 1.5),
    ("SUM(D)", (), 0.0),
    ("SUM(N)", (Decimal("1.10"), Decimal("2.25")), Decimal("3.35")),
    ("SUM_LIST(A)", ([1, 2, None], None, [3]), 6),
    ("AVG(I)", (1, 2, None), 1.5),
    ("AVG(D)", (), 0.0),
    ("MIN(I)", (3, None, 1), 1),
    ("MAX(S)", ("a", "B", None), "a"),
    ("MAX(B)", (b"\x01", b"\xff"), b"\x01"),  # bytes have signs
    ("MAX(D)", (math.nan, 1.0), math.nan),
    ("MIN(DT)", (5, 3), 3),
    ("MAX(I)", (None,), None),
    ("COLLECT_LIST(I)", (1, None, 1), [1, None, 1]),
    ("COLLECT_SET(I)", (2, 1, None, 2), [2, 1, None]),
    ("HISTOGRAM(S)", ("a", "b", "a"), {"a": 2, "b": 1}),
    ("ATTR(I)", (1, 1), 1),
    ("ATTR(I)", (1, 2), None),
    ("TOPK(I, 2)", (1, 5, None, 3, 5), [5, 5]),
    (
        "TOPK(I, S, 2)",
        ((1, "a"), (5, "b"), (3, None)),
        [{"sort_col": 5, "col0": "b"}, {"sort_col": 3, "col0": None}],
    ),
    ("TOPKDISTINCT(I, 2)", (1, 5, None, 3, 5), [5, 3]),
    ("EARLIEST_BY_OFFSET(I)", (None, 1, 2), 1),
    ("EARLIEST_BY_OFFSET(I, FALSE)", (None, 1, 2), None),
    ("EARLIEST_BY_OFFSET(I, 2)", (None, 1, 2, 3), [1, 2]),
    ("LATEST_BY_OFFSET(I)", (1, 2, None), 2),
    ("LATEST_BY_OFFSET(I, FALSE)", (1, 2, None), None),
    ("LATEST_BY_OFFSET(I, 2, FALSE)", (1, 2, None), [2, None]),
    ("LATEST_BY_OFFSET(I, 2)", (1, 2, 3), [2, 3]),
    ("STDDEV_SAMP(I)", (2, 4, 4, 4, 5, 5, 7, 9), 32 / 7),
    ("STDDEV_SAMPLE(I)", (2, 4, 4, 4, 5, 5, 7, 9), math.sqrt(32 / 7)),
    ("STDDEV_SAMP(D)", (1.0,), 0.0),
    ("CORRELATION(I, I)", ((1, 2), (2, 4), (3, 6)), 1.0),
    ("CORRELATION(I, I)", ((1, 2),), math.nan),
    ("CORRELATION(I, I)", ((1, None),), math.nan),
    ("COUNT_DISTINCT(S)", ("a", "b", None, "a"), 2),
]


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return (math.isnan(found) and math.isnan(wanted)) or found == pytest.approx(wanted)
    return found == wanted


@pytest.mark.parametrize(("text", "rows", "wanted"), RESULTS, ids=lambda value: str(value)[:50])
def test_rows_come_in(text: str, rows: tuple[Any, ...], wanted: Any) -> None:
    assert same(result_of(text, *rows), wanted)


UNDONE = [text for text, rows, _ in RESULTS if len(rows) > 2 and resolved(text).has_undo]


@pytest.mark.parametrize("text", sorted(set(UNDONE)))
def test_a_row_taken_back_leaves_nothing(text: str) -> None:
    rows = next(rows for each, rows, _ in RESULTS if each == text and len(rows) > 2)
    aggregate = made(text)
    assert aggregate.remove is not None
    first = rows[0] if isinstance(rows[0], tuple) else (rows[0],)
    state = aggregate.remove(state_of(aggregate, *rows[1:], rows[0]), *first)
    assert same(aggregate.result(state), aggregate.result(state_of(aggregate, *rows[1:])))


def test_where_a_table_cannot_be_aggregated_nothing_is_taken_back() -> None:
    with_undo = {name for name in aggregates.names() if aggregates.find(name).has_undo}  # type: ignore[union-attr]
    assert with_undo == {
        "ATTR",
        "AVG",
        "COLLECT_LIST",
        "CORRELATION",
        "COUNT",
        "HISTOGRAM",
        "STDDEV_SAMP",
        "STDDEV_SAMPLE",
        "SUM",
        "SUM_LIST",
    }
    for text, _, _ in RESULTS:
        assert (made(text).remove is not None) == resolved(text).has_undo


MERGED = [
    each for each in RESULTS if not each[0].startswith("LATEST_BY_OFFSET(I, 2")
]  # ksqlDB keeps the oldest of both


@pytest.mark.parametrize(("text", "rows", "wanted"), MERGED, ids=lambda value: str(value)[:50])
def test_two_states_become_one(text: str, rows: tuple[Any, ...], wanted: Any) -> None:
    aggregate = made(text)
    middle = len(rows) // 2
    one, other = state_of(aggregate, *rows[:middle]), state_of(aggregate, *rows[middle:])
    assert same(aggregate.result(aggregate.merge(one, other)), wanted)


def test_the_order_of_rows_outlives_a_restart() -> None:
    """A new process goes on behind the numbers that its states have brought along."""
    old = made("EARLIEST_BY_OFFSET(I, 2)")
    state = state_of(old, 1)
    new = made("EARLIEST_BY_OFFSET(I, 2)")
    state = new.add(state, 2)
    assert new.result(new.merge(state, new.add(new.initial(), 3))) == [1, 2]


def test_a_sum_that_does_not_fit_stops() -> None:
    with pytest.raises(FunctionFailed, match="Numeric field overflow"):
        result_of("SUM(N)", Decimal("99.99"), Decimal("0.01"))


def test_settings_bound_the_lists() -> None:
    lists = made("COLLECT_LIST(I)", {"ksql.functions.collect_list.limit": "2"})
    assert state_of(lists, 1, 2, 3) == [1, 2]
    sets = made(
        "COLLECT_SET(I)", {"ksql.functions.collect_set.limit": "2", "ksql.functions.collect_list.limit": "1"}
    )
    assert state_of(sets, 1, 1, 2, 3) == [1, 2]


def test_a_histogram_has_a_thousand_entries() -> None:
    aggregate = made("HISTOGRAM(S)")
    state = {str(number): 1 for number in range(1000)}
    assert aggregate.add(state, "more") == state
    assert aggregate.add(state, "7")["7"] == 2


def test_many_distinct_values_are_estimated_within_two_percent() -> None:
    aggregate = made("COUNT_DISTINCT(S)")
    registers: dict[int, int] = {}
    for start in range(0, 20_000, 50):  # states of their own, so that the test does not copy one 20,000 times
        registers = aggregate.merge(
            registers, state_of(aggregate, *(f"user-{start + number}" for number in range(50)))
        )
    assert aggregate.result(registers) == pytest.approx(20_000, rel=0.02)


def test_values_are_hashed_as_ksqldb_does() -> None:
    assert murmur2(b"21") == -973932308 % 2**32  # Kafka's own examples
    assert murmur2(b"foobar") == -790332482 % 2**32
    assert murmur2(b"a-little-bit-long-string") == -985981536 % 2**32
    assert hash_of(1, t.INTEGER) == hash_of(1, t.BIGINT)
    assert len({hash_of(value, t.BIGINT) for value in range(-1000, 1000)}) == 2000


@pytest.mark.parametrize(
    ("text", "type_", "state"),
    [
        ("COUNT(*)", "BIGINT", "BIGINT"),
        ("SUM(N)", "DECIMAL(4, 2)", "DECIMAL(4, 2)"),
        ("AVG(I)", "DOUBLE", "STRUCT<`SUM` INTEGER, `COUNT` BIGINT>"),
        ("TOPK(I, S, 3)", "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>", None),
        ("COLLECT_LIST(A)", "ARRAY<ARRAY<INTEGER>>", None),
        ("LATEST_BY_OFFSET(S, 2)", "ARRAY<STRING>", "ARRAY<STRUCT<`SEQ` BIGINT, `VAL` STRING>>"),
        ("HISTOGRAM(S)", "MAP<STRING, BIGINT>", None),
        ("SUM(I + 1)", "INTEGER", None),
    ],
)
def test_calls_have_types(text: str, type_: str, state: str | None) -> None:
    found = resolved(text)
    assert str(found.type) == type_
    assert str(typed(parse_expression(text))) == type_
    if state is not None:
        assert str(found.state_type) == state


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SUM(S)", "Function 'SUM' does not accept parameters (STRING)."),
        ("AVG(N)", "Function 'avg' does not accept parameters (DECIMAL(4, 2))."),
        (
            "TOPK(I, I)",
            "Parameter 2 passed to function TOPK must be a literal constant, but was expression: 'I'",
        ),
        ("LATEST_BY_OFFSET(I, 'x')", "does not accept parameters (INTEGER, STRING)"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(TypeRefused) as refused:
        resolved(text)
    assert message in refused.value.message


@pytest.mark.parametrize("text", ["LATEST_BY_OFFSET(I, 0)", "EARLIEST_BY_OFFSET(I, -1)"])
def test_no_values_are_no_choice(text: str) -> None:
    with pytest.raises(TypeRefused, match="must be 1 or greater"):
        made(text)
