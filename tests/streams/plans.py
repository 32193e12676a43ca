"""Plans that the tests here run: the kernel's tests have the words for them."""

from __future__ import annotations

from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind, Plan, PythonStep, StreamTableJoin
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.types import BIGINT, STRING
from tests.unit.streams.kernel import plans

CLICKS = plans.schema(("PAGE", STRING), ("N", BIGINT))


def filtered(source: str, sink: str) -> Plan:
    """Rows with N > 1."""
    return plans.write(plans.where(plans.read(source, STREAM, CLICKS), plans.over("N", 1)), sink)


def python_function(source: str, sink: str) -> Plan:
    read = plans.read(source, STREAM, CLICKS)
    step = PythonStep(
        name="python",
        schema=CLICKS,
        kind=STREAM,
        input=read,
        function=lambda row: [(None, (row["PAGE"].upper(), row["N"] + 1))],
        gives="rows",
    )
    return plans.write(step, sink)


def counted(source: str, sink: str) -> Plan:
    """Rows by their key."""
    read = plans.read(source, STREAM, CLICKS)
    return plans.write(plans.aggregate(read, plans.COUNT, plans.total("N")), sink)


def counted_in_windows(source: str, sink: str) -> Plan:
    read = plans.read(source, STREAM, CLICKS)
    return plans.write(plans.aggregate(read, plans.COUNT, window=plans.tumbling(60_000)), sink)


def counted_by_page(source: str, sink: str) -> Plan:
    """Through a repartition topic."""
    keyed = plans.by(plans.read(source, STREAM, CLICKS), "PAGE")
    return plans.write(plans.aggregate(plans.through(keyed), plans.COUNT), sink)


def joined(stream: str, table: str, sink: str) -> Plan:
    left = plans.read(stream, STREAM, CLICKS)
    right = plans.read(table, TABLE, plans.schema(("NAME", STRING)))
    join = StreamTableJoin(
        name="join",
        schema=Schema(CLICKS.key, (*CLICKS.value, *right.schema.value)),
        kind=STREAM,
        left=left,
        right=right,
        join=JoinKind.LEFT,
    )
    return plans.write(join, sink)


def looked_up(stream: str, table: str, sink: str) -> Plan:
    """By PAGE, in a table that every task has whole."""
    left = plans.read(stream, STREAM, CLICKS)
    right = plans.read(table, TABLE, plans.schema(("NAME", STRING)))
    join = StreamTableJoin(
        name="join",
        schema=Schema(CLICKS.key, (*CLICKS.value, *right.schema.value)),
        kind=STREAM,
        left=left,
        right=right,
        join=JoinKind.LEFT,
        is_global=True,
        left_key=(plans.col("PAGE"),),
    )
    return plans.write(join, sink)
