"""Steps of one input: read, filter, project, select key, aggregate, write; across partitions and restarts."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.kernel.topology import cut, partition_counts
from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import Arithmetic, ColumnRef, Literal
from penstock.streams.plan.nodes import STREAM, TABLE, AggregateCall
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Source, Timestamp, Window
from penstock.streams.plan.types import BIGINT, BYTES, INTEGER, STRING, array
from tests.unit.streams.kernel.plans import (
    COUNT,
    JSON,
    Run,
    aggregate,
    by,
    col,
    function,
    hopping,
    listed,
    over,
    read,
    regroup,
    schema,
    select,
    session,
    through,
    total,
    tumbling,
    where,
    write,
)

CLICKS = schema(("PAGE", STRING), ("V", BIGINT))


def double(name: str) -> Arithmetic:
    return Arithmetic("*", col(name), Literal(2, INTEGER))


def test_a_stream_is_filtered_and_projected() -> None:
    run = Run(write(select(where(read("in", STREAM, CLICKS), over("V", 3)), ("D", BIGINT, double("V")))))
    run.pipe("in", "a", {"PAGE": "p", "V": 3}, 1)
    run.pipe("in", "a", {"PAGE": "p", "V": 4}, 2)
    run.pipe("in", None, {"PAGE": "p", "V": 5}, 3)
    run.pipe("in", "a", None, 4)
    assert run.new() == [("a", {"D": 8}, 2), (None, {"D": 10}, 3)]


def test_null_values_pass_a_projection() -> None:
    run = Run(write(select(read("in", STREAM, CLICKS), ("D", BIGINT, double("V")))))
    run.pipe("in", "a", None, 4)
    assert run.new() == [("a", None, 4)]


def test_a_table_that_nobody_asks_keeps_no_store() -> None:
    (part,) = cut(write(select(read("in", TABLE, CLICKS), ("D", BIGINT, double("V")))))
    assert part.stores == ()


def test_a_row_of_a_table_that_stops_matching_becomes_a_tombstone_once() -> None:
    run = Run(write(where(read("in", TABLE, CLICKS), over("V", 3))))
    for at, value in enumerate((1, 5, 2, 1, None)):
        run.pipe("in", "a", None if value is None else {"PAGE": "p", "V": value}, at)
    assert run.new() == [("a", {"PAGE": "p", "V": 5}, 1), ("a", None, 2)]


def test_a_record_that_cannot_be_read_is_left_out_and_told() -> None:
    run = Run(write(read("in", STREAM, CLICKS)))
    run.driver.pipe("in", key=b'"a"', value=b"{", timestamp=5)
    run.pipe("in", "a", {"PAGE": "p", "V": 1}, 6)
    assert len(run.new()) == 1
    (trouble,) = run.driver.troubles
    assert (trouble.kind, trouble.record.offset) == ("deserialize", 0)


def test_rows_explode_and_shorter_lists_are_padded() -> None:
    source = read("in", STREAM, schema(("A", array(BIGINT)), ("B", array(BIGINT))))
    node = nodes.Explode(
        name="explode",
        schema=schema(("A", BIGINT), ("B", BIGINT)),
        kind=STREAM,
        input=source,
        items=(function("EXPLODE", col("A")), col("B")),
        exploded=(0, 1),
    )
    run = Run(write(node))
    run.pipe("in", "k", {"A": [1, 2], "B": [3]})
    run.pipe("in", "k", {"A": [], "B": None})
    assert [value for _, value, _ in run.new()] == [{"A": 1, "B": 3}, {"A": 2, "B": None}]


def test_a_null_key_groups_nothing_and_each_row_gives_a_row() -> None:
    run = Run(write(aggregate(through(by(read("in", STREAM, CLICKS), "PAGE")), COUNT, total("V"))), {"in": 3})
    for at, (key, page, value) in enumerate([("a", "p", 1), ("b", "p", 2), ("b", None, 9), ("c", "q", 4)]):
        run.pipe("in", key, {"PAGE": page, "V": value}, 10 - at)
    assert run.new() == [
        ("p", {"N": 1, "TOTAL": 1}, 10),
        ("p", {"N": 2, "TOTAL": 3}, 10),
        ("q", {"N": 1, "TOTAL": 4}, 7),
    ]


def test_repartition_topics_have_as_many_partitions_as_flows_into_them() -> None:
    parts = cut(write(aggregate(through(by(read("in", STREAM, CLICKS), "PAGE")), COUNT)))
    assert [(part.topics, part.internal, part.sinks) for part in parts] == [
        (("in",), (), ()),
        ((), ("through-repartition",), ("out",)),
    ]
    assert partition_counts(parts, {"in": 5}) == {"through-repartition": 5}


def test_an_aggregate_over_a_table_takes_the_old_row_back() -> None:
    run = Run(write(aggregate(through(regroup(read("in", TABLE, CLICKS), "PAGE")), COUNT, total("V"))))
    run.pipe("in", "a", {"PAGE": "p", "V": 1}, 1)
    run.pipe("in", "b", {"PAGE": "p", "V": 10}, 2)
    run.pipe("in", "a", {"PAGE": "p", "V": 2}, 3)
    assert run.new()[-1] == ("p", {"N": 2, "TOTAL": 12}, 3)
    run.pipe("in", "a", {"PAGE": "q", "V": 2}, 4)
    run.pipe("in", "b", None, 5)
    assert run.new() == [
        ("p", {"N": 1, "TOTAL": 10}, 4),
        ("q", {"N": 1, "TOTAL": 2}, 4),
        ("p", {"N": 0, "TOTAL": 0}, 5),
    ]


def test_windows_close_by_stream_time_over_all_keys() -> None:
    run = Run(write(aggregate(read("in", STREAM, CLICKS), COUNT, window=tumbling(10, grace_ms=5))))
    for key, time in (("a", 3), ("b", 14), ("a", 9), ("b", 15), ("a", 8)):
        run.pipe("in", key, {"PAGE": "p", "V": 1}, time)
    assert run.new() == [
        (("a", 0), {"N": 1}, 3),
        (("b", 10), {"N": 1}, 14),
        (("a", 0), {"N": 2}, 9),
        (("b", 10), {"N": 2}, 15),
    ]
    assert [trouble.kind for trouble in run.driver.troubles] == ["late"]


def test_a_row_is_in_every_hopping_window_over_it() -> None:
    run = Run(write(aggregate(read("in", STREAM, CLICKS), COUNT, window=hopping(10, 5))))
    run.pipe("in", "a", {"PAGE": "p", "V": 1}, 3)
    run.pipe("in", "a", {"PAGE": "p", "V": 1}, 12)
    assert [key for key, _, _ in run.new()] == [("a", 0), ("a", 5), ("a", 10)]


def test_sessions_that_a_row_joins_become_one() -> None:
    run = Run(write(aggregate(read("in", STREAM, CLICKS), listed("V"), window=session(10))))
    for value, time in ((1, 0), (2, 20), (3, 10), (4, 5)):
        run.pipe("in", "a", {"PAGE": "p", "V": value}, time)
    assert run.new() == [
        (("a", 0, 0), {"LISTED": [1]}, 0),
        (("a", 20, 20), {"LISTED": [2]}, 20),
        (("a", 0, 0), None, 0),
        (("a", 20, 20), None, 20),
        (("a", 0, 20), {"LISTED": [1, 2, 3]}, 20),
        (("a", 0, 20), None, 20),
        (("a", 0, 20), {"LISTED": [1, 2, 3, 4]}, 20),
    ]


def test_only_the_last_row_of_a_window_goes_out_when_it_is_suppressed() -> None:
    counted = aggregate(read("in", STREAM, CLICKS), COUNT, window=tumbling(10, grace_ms=0))
    node = nodes.Suppress(
        name="final", schema=counted.schema, kind=TABLE, window=counted.window, input=counted
    )
    run = Run(write(node))
    for key, time in (("a", 1), ("b", 2), ("a", 9)):
        run.pipe("in", key, {"PAGE": "p", "V": 1}, time)
    assert run.new() == []
    run.driver.restart()
    run.pipe("in", "c", {"PAGE": "p", "V": 1}, 10)
    assert run.new() == [(("a", 0), {"N": 2}, 9), (("b", 0), {"N": 1}, 2)]


def test_a_closed_session_takes_no_row_in() -> None:
    run = Run(write(aggregate(read("in", STREAM, CLICKS), COUNT, window=session(3, grace_ms=0))))
    for key, time in (("b", 15), ("a", 19), ("b", 18)):
        run.pipe("in", key, {"PAGE": "p", "V": 1}, time)
    assert [key for key, _, _ in run.new()] == [("b", 15, 15), ("a", 19, 19), ("b", 18, 18)]


def test_a_session_is_final_when_no_row_can_belong_to_it_any_more() -> None:
    counted = aggregate(read("in", STREAM, CLICKS), COUNT, window=session(3, grace_ms=1))
    node = nodes.Suppress(
        name="final", schema=counted.schema, kind=TABLE, window=counted.window, input=counted
    )
    run = Run(write(node))
    for key, time in (("a", 0), ("b", 4)):
        run.pipe("in", key, {"PAGE": "p", "V": 1}, time)
    assert run.new() == []
    run.pipe("in", "b", {"PAGE": "p", "V": 1}, 5)
    assert run.new() == [(("a", 0, 0), {"N": 1}, 0)]


def test_headers_are_columns_and_pass_on() -> None:
    columns = Schema(
        (Column("ID", STRING),), (Column("H", BYTES), Column("V", BIGINT)), headers=(("H", "h"),)
    )
    run = Run(
        write(
            select(read("in", STREAM, columns), ("H", BYTES, ColumnRef("H")), ("V", BIGINT, ColumnRef("V")))
        )
    )
    run.driver.pipe("in", key=b'"a"', value=b'{"V": 1}', headers=(("h", b"x"), ("h", b"y")))
    (record,) = run.driver.outputs("out")
    assert record.value == b'{"H":"eQ==","V":1}'
    assert record.headers == (("h", b"x"), ("h", b"y"))


def test_the_time_of_rows_comes_from_a_column_and_goes_to_a_column() -> None:
    columns = schema(("T", STRING), ("V", BIGINT))
    own = Source("IN", STREAM, "in", columns, JSON, timestamp=Timestamp("T", "yyyy-MM-dd HH:mm"))
    source = replace(read("in", STREAM, columns), source=own)
    (sink,) = write(source).sinks
    assert isinstance(sink, nodes.Write)
    run = Run(nodes.Plan((sink,)))
    run.pipe("in", "a", {"T": "1970-01-01 00:01", "V": 5}, 9)
    run.pipe("in", "a", {"T": "soon", "V": 5}, 9)
    run.pipe("in", "a", {"T": None, "V": 5}, 9)
    run.pipe("in", "a", {"T": "1969-01-01 00:01", "V": 5}, 9)
    run.pipe("in", "a", None, 9)
    assert run.new() == [("a", {"T": "1970-01-01 00:01", "V": 5}, 60_000), ("a", None, 9)]
    assert [each.kind for each in run.driver.troubles] == ["timestamp"] * 3

    run = Run(nodes.Plan((replace(sink, timestamp=Timestamp("V")),)))
    run.pipe("in", "a", {"T": "1970-01-01 00:01", "V": 5}, 9)
    run.pipe("in", "a", {"T": "1970-01-01 00:01", "V": -5}, 9)
    run.pipe("in", "a", None, 1)
    assert run.new() == [("a", {"T": "1970-01-01 00:01", "V": 5}, 5), ("a", None, 60_000)]


@pytest.mark.parametrize("window", [session(60_000), tumbling(60_000, 0)], ids=["session", "tumbling"])
def test_a_time_at_the_end_of_all_numbers_costs_only_its_record(window: Window) -> None:
    columns = schema(("T", BIGINT))
    own = Source("IN", STREAM, "in", columns, JSON, timestamp=Timestamp("T"))
    node = replace(read("in", STREAM, columns), source=own)
    run = Run(write(aggregate(node, COUNT, window=window)))
    for time in (5000, 2**63 - 1, 2**62 + 1, 6000):
        run.pipe("in", "a", {"T": time})
    assert run.new()[-1][1] == {"N": 2}
    assert [(each.kind, each.error) for each in run.driver.troubles] == [
        ("timestamp", "the time is too far in the future")
    ] * 2


def test_half_a_pair_of_surrogates_is_a_key_and_a_value_like_others() -> None:
    text = schema(("PAGE", STRING))
    page = AggregateCall("LATEST_BY_OFFSET", (col("PAGE"),), (), STRING)
    run = Run(write(aggregate(through(by(read("in", STREAM, text), "PAGE")), COUNT, ("P", page))))
    for value in (b'{"PAGE": "\\ud800"}', b'{"PAGE": "x"}'):
        for _ in range(2):
            run.driver.pipe("in", key=b'"a"', value=value)
    run.driver.restart()
    run.driver.pipe("in", key=b'"a"', value=b'{"PAGE": "x"}')
    assert json.loads(run.driver.outputs("out")[-1].value or b"") == {"N": 3, "P": "x"}


def test_state_comes_back_as_it_was() -> None:
    for value in ("\ud800", ["x\udc00", {"\ud800": 1}], Decimal("1.50"), [10**30, "\ud800"]):
        assert unpack(pack(value)) == value
