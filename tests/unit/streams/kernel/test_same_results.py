"""Any plan, any input: tasks that come back with their stores go on as if nothing had been, and the number of partitions makes no
difference to any key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind, Node
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.types import BIGINT, STRING
from tests.unit.streams.kernel.plans import (
    COUNT,
    JSON,
    Run,
    aggregate,
    by,
    col,
    hopping,
    listed,
    over,
    read,
    regroup,
    schema,
    select,
    session,
    sliding,
    through,
    total,
    tumbling,
    where,
    write,
)

COLUMNS = schema(("G", STRING), ("V", BIGINT))
RENAMED = (("G2", STRING, col("G")), ("V2", BIGINT, col("V")))
KEYS = "abc"


def one(kind: Any = STREAM) -> Node:
    return read("one", kind, COLUMNS)


def two(kind: Any) -> Node:
    return select(read("two", kind, COLUMNS), *RENAMED, name="two")


def joined(left: Node, right: Node) -> Schema:
    return Schema(left.schema.key, (*left.schema.value, *right.schema.value))


def stream_join(join: JoinKind, grace_ms: int | None) -> Node:
    left, right = one(), two(STREAM)
    return nodes.StreamStreamJoin(
        name="join",
        schema=joined(left, right),
        kind=STREAM,
        left=left,
        right=right,
        join=join,
        before_ms=4,
        after_ms=7,
        grace_ms=grace_ms,
    )


def stream_table_join(join: JoinKind) -> Node:
    left, right = one(), two(TABLE)
    return nodes.StreamTableJoin(
        name="join", schema=joined(left, right), kind=STREAM, left=left, right=right, join=join
    )


def table_join(join: JoinKind) -> nodes.TableTableJoin:
    left, right = one(TABLE), two(TABLE)
    return nodes.TableTableJoin(
        name="join", schema=joined(left, right), kind=TABLE, left=left, right=right, join=join
    )


def foreign_join(join: JoinKind) -> Node:
    left = one(TABLE)
    right = read("two", TABLE, schema(("G2", STRING), ("V2", BIGINT), key=(Column("RID", STRING),)))
    return nodes.ForeignKeyJoin(
        name="join",
        schema=joined(left, right),
        kind=TABLE,
        left=left,
        right=right,
        join=join,
        left_key=col("G"),
        formats=JSON,
    )


def suppressed(node: nodes.Aggregate) -> Node:
    return nodes.Suppress(name="final", schema=node.schema, kind=TABLE, window=node.window, input=node)


# Those on the left do not look at stream time, which is a partition's own.
TIMELESS: dict[str, Callable[[], Node]] = {
    "filter": lambda: where(select(one(), *RENAMED), over("V2", 3)),
    "table filter": lambda: where(one(TABLE), over("V", 3)),
    "count by another key": lambda: aggregate(through(by(one(), "G")), COUNT, listed("V")),
    "having": lambda: where(aggregate(through(by(one(), "G")), COUNT, total("V")), over("TOTAL", 5)),
    "tumbling": lambda: aggregate(through(by(one(), "G")), COUNT, window=tumbling(5)),
    "hopping": lambda: aggregate(one(), total("V"), window=hopping(6, 2)),
    "session": lambda: aggregate(one(), listed("V"), window=session(3)),
    "sliding": lambda: aggregate(one(), listed("V"), window=sliding(5)),
    "aggregate of a table": lambda: aggregate(through(regroup(one(TABLE), "G")), COUNT, total("V")),
    "aggregate of a join": lambda: aggregate(
        through(regroup(table_join(JoinKind.FULL), "G2")), COUNT, total("V")
    ),
    "stream-stream": lambda: stream_join(JoinKind.FULL, None),
    "stream-table": lambda: stream_table_join(JoinKind.LEFT),
    "table-table": lambda: where(table_join(JoinKind.RIGHT), over("V2", 3)),
    "foreign key": lambda: foreign_join(JoinKind.INNER),
    "foreign key, left": lambda: where(foreign_join(JoinKind.LEFT), over("V", 3)),
}
TIMED: dict[str, Callable[[], Node]] = {
    "late rows": lambda: aggregate(one(), COUNT, window=tumbling(5, grace_ms=2)),
    "late sliding": lambda: aggregate(one(), COUNT, window=sliding(4, grace_ms=3)),
    "final sliding": lambda: suppressed(aggregate(one(), total("V"), window=sliding(5, grace_ms=2))),
    "late sessions": lambda: aggregate(one(), COUNT, window=session(3, grace_ms=1)),
    "final": lambda: suppressed(aggregate(one(), COUNT, window=hopping(6, 3, grace_ms=1))),
    "final sessions": lambda: suppressed(aggregate(one(), listed("V"), window=session(3, grace_ms=0))),
    "left with grace": lambda: stream_join(JoinKind.LEFT, 3),
    "full with grace": lambda: stream_join(JoinKind.FULL, 0),
}

records = st.lists(
    st.tuples(
        st.sampled_from(["one", "two"]),
        st.sampled_from([*KEYS, *KEYS, None]),
        st.one_of(st.none(), st.tuples(st.sampled_from([*KEYS, None]), st.integers(0, 8))),
        st.integers(0, 40),
        st.booleans(),
    ),
    max_size=40,
)


def results(node: Node, given_records: list[Any], partitions: int, *, restarts: bool = False) -> list[Any]:
    run = Run(write(node), partitions)
    reads = run.driver.topics()
    for topic, key, value, time, restart in given_records:
        if topic not in reads:
            continue
        run.pipe(topic, key, None if value is None else _named(node, topic, value), time)
        if restart and restarts:
            run.driver.restart()
    assert not [each for each in run.driver.troubles if each.kind not in ("late", "skipped")]
    return run.new()


def _named(node: Node, topic: str, value: tuple[Any, int]) -> dict[str, Any]:
    has_own_names = topic == "two" and "RID" in str(_reads(node))
    return dict(zip(("G2", "V2") if has_own_names else ("G", "V"), value, strict=True))


def _reads(node: Node) -> list[Any]:
    return [each.schema for each in nodes.Plan((node,)).nodes() if isinstance(each, nodes.Read)]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*TIMELESS.items(), *TIMED.items()]), records)
def test_a_task_that_comes_back_goes_on(
    plan: tuple[str, Callable[[], Node]], given_records: list[Any]
) -> None:
    assert results(plan[1](), given_records, 1, restarts=True) == results(plan[1](), given_records, 1)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([*TIMELESS.items()]), records, st.integers(2, 5))
def test_partitions_change_nothing_for_any_key(
    plan: tuple[str, Callable[[], Node]], given_records: list[Any], partitions: int
) -> None:
    assert _by_key(results(plan[1](), given_records, partitions)) == _by_key(
        results(plan[1](), given_records, 1)
    )


def _by_key(found: list[Any]) -> dict[Any, list[Any]]:
    by_key = defaultdict(list)
    for key, value, time in found:
        by_key[key].append((value, time))
    return by_key
