"""Joins of streams and tables: who gives a row, when, with which time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.streams.kernel.driver import Driver
from penstock.streams.kernel.topology import cut, partition_counts
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind, Node, Plan
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.types import BIGINT, STRING
from tests.unit.sql.analysis.catalogs import World
from tests.unit.streams.formats.fake_registry import FakeLookup
from tests.unit.streams.kernel.plans import JSON, Run, col, over, read, schema, through, where, write

LEFT = schema(("L", BIGINT))
RIGHT = schema(("R", BIGINT))
BOTH = schema(("L", BIGINT), ("R", BIGINT))


def streams(join: JoinKind, grace_ms: int | None = None, before_ms: int = 10, after_ms: int = 10) -> Plan:
    return write(
        nodes.StreamStreamJoin(
            name="join",
            schema=BOTH,
            kind=STREAM,
            left=read("left", STREAM, LEFT),
            right=read("right", STREAM, RIGHT),
            join=join,
            before_ms=before_ms,
            after_ms=after_ms,
            grace_ms=grace_ms,
        )
    )


def tables(join: JoinKind) -> nodes.TableTableJoin:
    left, right = read("left", TABLE, LEFT), read("right", TABLE, RIGHT)
    return nodes.TableTableJoin(name="join", schema=BOTH, kind=TABLE, left=left, right=right, join=join)


def row(left: int | None, right: int | None) -> dict[str, int | None]:
    return {"L": left, "R": right}


def feed(run: Run, *records: tuple[str, str | None, int | None, int]) -> list[Any]:
    """(topic, key, value, time)"""
    for topic, key, value, time in records:
        run.pipe(topic, key, None if value is None else {topic[0].upper(): value}, time)
    return run.new()


def test_rows_of_streams_meet_within_the_time_before_and_after() -> None:
    run = Run(streams(JoinKind.INNER, before_ms=5, after_ms=10))
    assert feed(run, ("right", "a", 1, 94), ("right", "a", 2, 95), ("right", "b", 3, 100)) == []
    assert feed(run, ("left", "a", 7, 100)) == [("a", row(7, 2), 100)]
    assert feed(run, ("right", "a", 4, 110), ("right", "a", 5, 111)) == [("a", row(7, 4), 110)]
    assert feed(run, ("left", None, 8, 110), ("left", "a", None, 110)) == []


def test_windows_of_two_sizes_meet_when_they_start_together() -> None:
    registry = FakeLookup()
    query = World(lookup=registry).query(
        """CREATE STREAM l (id STRING KEY, v INT) WITH (KAFKA_TOPIC='l', KEY_FORMAT='JSON_SR', VALUE_FORMAT='JSON',
            WINDOW_TYPE='Hopping', WINDOW_SIZE='5 SECONDS');
        CREATE STREAM r (id STRING KEY, w INT) WITH (KAFKA_TOPIC='r', KEY_FORMAT='JSON_SR', VALUE_FORMAT='JSON',
            WINDOW_TYPE='Tumbling', WINDOW_SIZE='2 SECONDS');
        CREATE STREAM both AS SELECT l.id, v, w FROM l JOIN r WITHIN 1 MINUTE ON l.id = r.id;"""
    )
    driver = Driver(query.plan, registry=registry)
    one, two = (b'\0\0\0\0\1"a"' + start.to_bytes(8, "big") for start in (1000, 2000))
    driver.pipe("l", key=one, value=b'{"V": 1}', timestamp=1000)
    driver.pipe("r", key=two, value=b'{"W": 2}', timestamp=2000)
    driver.pipe("r", key=one, value=b'{"W": 3}', timestamp=1500)
    assert [(each.key, each.value) for each in driver.outputs("BOTH")] == [(one, b'{"V":1,"W":3}')]


def test_without_grace_a_row_goes_out_alone_and_its_match_follows() -> None:
    run = Run(streams(JoinKind.FULL))
    assert feed(run, ("left", "a", 1, 0), ("right", "b", 2, 1), ("right", "a", 3, 5)) == [
        ("a", row(1, None), 0),
        ("b", row(None, 2), 1),
        ("a", row(1, 3), 5),
    ]


@pytest.mark.parametrize("join", [JoinKind.LEFT, JoinKind.FULL])
def test_with_grace_a_row_goes_out_alone_when_nobody_can_come_any_more(join: JoinKind) -> None:
    run = Run(streams(join, grace_ms=5))
    assert feed(run, ("left", "a", 1, 0), ("left", "b", 2, 3), ("right", "b", 3, 4)) == [("b", row(2, 3), 4)]
    run.driver.restart()
    assert feed(run, ("right", "c", 9, 15)) == []
    assert feed(run, ("right", "c", 9, 16)) == [("a", row(1, None), 0)]
    assert feed(run, ("right", "a", 4, 6)) == [("a", row(1, 4), 6)]  # late, but its partner is still there


def test_several_rows_of_one_time_are_all_kept() -> None:
    run = Run(streams(JoinKind.INNER))
    feed(run, ("left", "a", 1, 0), ("left", "a", 2, 0))
    assert [value for _, value, _ in feed(run, ("right", "a", 3, 0))] == [row(1, 3), row(2, 3)]


def test_rows_far_behind_their_own_side_are_no_partners() -> None:
    run = Run(streams(JoinKind.INNER, grace_ms=0))
    feed(run, ("left", "a", 1, 0), ("left", "b", 1, 100))
    assert feed(run, ("right", "a", 3, 0)) == []


def test_a_stream_asks_a_table_as_it_is_now() -> None:
    node = nodes.StreamTableJoin(
        name="join",
        schema=BOTH,
        kind=STREAM,
        left=read("left", STREAM, LEFT),
        right=where(read("right", TABLE, RIGHT), over("R", 5)),
        join=JoinKind.LEFT,
    )
    run = Run(write(node))
    assert feed(run, ("left", "a", 1, 0), ("right", "a", 6, 99), ("left", "a", 2, 5)) == [
        ("a", row(1, None), 0),
        ("a", row(2, 6), 5),
    ]
    assert feed(run, ("right", "a", 5, 6), ("left", "a", 3, 7), ("left", "a", None, 8)) == [
        ("a", row(3, None), 7)
    ]


def test_an_inner_join_of_tables_loses_its_row_with_either_side() -> None:
    run = Run(write(tables(JoinKind.INNER)))
    assert feed(run, ("left", "a", 1, 5), ("right", "a", 2, 3)) == [("a", row(1, 2), 5)]
    assert feed(run, ("left", "a", None, 6)) == [("a", None, 6)]
    assert feed(run, ("right", "a", 3, 7), ("left", "a", 4, 1)) == [("a", row(4, 3), 7)]


def test_outer_joins_of_tables_keep_the_side_that_is_there() -> None:
    run = Run(write(tables(JoinKind.FULL)))
    assert feed(
        run, ("left", "a", 1, 0), ("right", "a", 2, 1), ("left", "a", None, 2), ("right", "a", None, 3)
    ) == [
        ("a", row(1, None), 0),
        ("a", row(1, 2), 1),
        ("a", row(None, 2), 2),
        ("a", None, 3),
    ]
    right = Run(write(tables(JoinKind.RIGHT)))
    assert feed(right, ("left", "a", 1, 0), ("right", "a", 2, 1), ("left", "a", None, 2)) == [
        ("a", row(1, 2), 1),
        ("a", row(None, 2), 2),
    ]


def test_a_filter_behind_a_join_of_tables_knows_the_row_before() -> None:
    run = Run(write(where(tables(JoinKind.INNER), over("R", 5))))
    assert feed(
        run, ("left", "a", 1, 0), ("right", "a", 2, 1), ("right", "a", 6, 2), ("right", "a", 3, 3)
    ) == [
        ("a", row(1, 6), 2),
        ("a", None, 3),
    ]


def foreign(join: JoinKind, *, right_moves: bool = False) -> Node:
    left = read("left", TABLE, schema(("F", STRING)))
    right: Node = read("right", TABLE, schema(("R", BIGINT), key=(Column("RID", STRING),)))
    right = through(right) if right_moves else right
    return nodes.ForeignKeyJoin(
        name="join",
        schema=Schema(left.schema.key, (*left.schema.value, *right.schema.value)),
        kind=TABLE,
        left=left,
        right=right,
        join=join,
        left_key=col("F"),
        formats=JSON,
    )


def pipe_left(run: Run, key: str, value: str | None, time: int) -> list[Any]:
    run.pipe("left", key, None if value is None else {"F": value or None}, time)
    return run.new()


@pytest.mark.parametrize("right_moves", [False, True])
@pytest.mark.parametrize("partitions", [{}, {"left": 3, "right": 2}])
def test_a_foreign_key_follows_its_row_and_the_other_side(
    partitions: dict[str, int], *, right_moves: bool
) -> None:
    run = Run(write(foreign(JoinKind.INNER, right_moves=right_moves)), partitions)
    assert pipe_left(run, "a", "x", 1) == []
    run.pipe("right", "x", {"R": 1}, 2)
    assert run.new() == [("a", {"F": "x", "R": 1}, 2)]
    run.pipe("right", "y", {"R": 2}, 9)
    assert run.new() == []
    assert pipe_left(run, "b", "y", 3) == [("b", {"F": "y", "R": 2}, 9)]
    assert pipe_left(run, "a", "y", 4) == [("a", {"F": "y", "R": 2}, 9)]
    run.pipe("right", "x", {"R": 3}, 10)
    assert run.new() == []
    run.driver.restart()
    assert pipe_left(run, "a", "z", 11) == [("a", None, 11)]
    assert pipe_left(run, "b", None, 7) == [
        ("b", None, 9)
    ]  # no earlier than the right row, whose join it ends
    run.pipe("right", "y", None, 13)
    assert run.new() == []


def test_a_left_join_by_foreign_key_keeps_the_row_alone() -> None:
    run = Run(write(foreign(JoinKind.LEFT)), {"left": 2})
    assert pipe_left(run, "a", "x", 1) == [("a", {"F": "x", "R": None}, 1)]
    assert pipe_left(run, "b", "", 1) == [("b", {"F": None, "R": None}, 1)]
    run.pipe("right", "x", {"R": 1}, 2)
    assert run.new() == [("a", {"F": "x", "R": 1}, 2)]
    run.pipe("right", "x", None, 3)
    assert run.new() == [("a", {"F": "x", "R": None}, 3)]
    assert pipe_left(run, "a", None, 4) == [("a", None, 4)]


def test_the_two_sides_of_a_foreign_key_are_tasks_of_their_own() -> None:
    parts = cut(write(foreign(JoinKind.INNER)))
    assert [part.topics for part in parts] == [("left",), ("right",)]
    counts = partition_counts(parts, {"left": 3, "right": 2})
    assert counts == {
        "join-subscription-response-topic": 3,
        "join-subscription-registration-topic": 2,
    }


def test_a_global_table_is_whole_in_every_task() -> None:
    node = nodes.StreamTableJoin(
        name="join",
        schema=BOTH,
        kind=STREAM,
        left=read("left", STREAM, LEFT),
        right=read("right", TABLE, RIGHT),
        join=JoinKind.INNER,
        is_global=True,
        left_key=(col("ID"),),
    )
    (part,) = cut(write(node))
    assert (part.topics, part.global_topics) == (("left",), ("right",))
    run = Run(write(node), {"left": 4, "right": 3})
    feed(run, *[("right", key, 1, 0) for key in "abcdef"])
    assert len(feed(run, *[("left", key, 2, 0) for key in "abcdef"])) == 6
