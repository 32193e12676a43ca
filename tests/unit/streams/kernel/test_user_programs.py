"""Functions and programs of the user in a plan: what they are given, and what becomes of a row on which they fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import STREAM, TABLE, AggregateCall, Plan, PythonAggregate
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.types import BIGINT, STRING
from tests.unit.streams.kernel.plans import Run, aggregate, read, schema, session, write

COLUMNS = schema(("V", BIGINT))


def step(function: Any, gives: str, *, changes_key: bool = False) -> nodes.PythonStep:
    return nodes.PythonStep(
        name="step",
        schema=COLUMNS,
        kind=STREAM,
        input=read("in", STREAM, COLUMNS),
        function=function,
        gives=gives,
        changes_key=changes_key,
    )


def test_a_function_gives_rows_from_a_row() -> None:
    def doubled(row: dict[str, Any]) -> Any:
        for time in range(row["V"]):
            yield (f"{row['ID']}{time}",), (row["ROWTIME"] // row["V"],)

    run = Run(write(step(doubled, "rows", changes_key=True)))
    run.pipe("in", "a", {"V": 2}, 10)
    run.pipe("in", "a", {"V": 0}, 10)
    assert run.new() == [("a0", {"V": 5}, 10), ("a1", {"V": 5}, 10)]


def test_a_row_that_a_function_fails_on_is_left_out_and_told() -> None:
    seen = []

    def look(row: dict[str, Any]) -> None:
        seen.append(1 // row["V"])

    run = Run(write(step(look, "nothing")))
    for value in (1, 0, 2):
        run.pipe("in", "a", {"V": value})
    assert [value["V"] for _, value, _ in run.new()] == [1, 2]
    assert [(each.node, each.kind, type(each.error)) for each in run.driver.troubles] == [
        ("step", "process", ZeroDivisionError)
    ]


class Totals:
    """Counts in a store, and says every 10 ms of stream time how far it is."""

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule(10, self.tell)

    def process(self, row: dict[str, Any], context: Any) -> None:
        totals = context.store("totals")
        context.forward(row["KEY"], (-row["V"],))
        totals.put(row["KEY"], totals.get(row["KEY"], 0) + 100 // row["V"])

    def tell(self, stream_time: int) -> None:
        for key, total in self.context.store("totals").all():
            self.context.forward(key, (total,), stream_time)


def test_a_program_has_stores_and_timers_and_a_failing_call_gives_nothing() -> None:
    node = nodes.PythonProcessor(
        name="program",
        schema=COLUMNS,
        kind=STREAM,
        input=read("in", STREAM, COLUMNS),
        make=Totals,
        stores=("totals",),
    )
    run = Run(write(node))
    run.pipe("in", "a", {"V": 50}, 0)
    run.pipe("in", "b", {"V": 0}, 5)
    run.pipe("in", "b", {"V": 20}, 9)
    assert run.new() == [("a", {"V": -50}, 0), ("b", {"V": -20}, 9)]
    run.pipe("in", "a", {"V": 100}, 12)
    assert run.new() == [("a", {"V": -100}, 12), ("a", {"V": 3}, 12), ("b", {"V": 5}, 12)]
    run.driver.restart()
    run.pipe("in", "a", {"V": 100}, 13)
    assert run.driver.stores("program-totals")[0].get(b"\x91\xa1a") == 4
    assert [each.kind for each in run.driver.troubles] == ["process"]


def own_aggregate(kind: Any, window: Any = None) -> Plan:
    def add(key: Any, row: dict[str, Any], state: list[Any]) -> list[Any]:
        return [*state, key, 10 // row["V"]]

    program = PythonAggregate(
        initial=list,
        add=add,
        remove=lambda key, row, state: state[:-2],
        merge=lambda key, one, other: [*one, *other],
    )
    call = AggregateCall("", (), (), STRING, program)
    return write(aggregate(read("in", kind, COLUMNS), ("A", call), window=window))


def test_an_aggregate_of_the_users_own_goes_on_behind_a_row_that_it_fails_on() -> None:
    run = Run(own_aggregate(STREAM, session(5)))
    for time, value in ((1, 5), (3, 0), (4, 2)):
        run.pipe("in", "a", {"V": value}, time)
    stored = [entry[1] for key, entry in run.driver.stores("aggregate")[0].all() if key]
    assert stored == [[["a", 2, "a", 5]]]
    assert [each.kind for each in run.driver.troubles if each.kind != "serialize"] == ["process"]


def test_a_users_aggregate_over_a_table_takes_the_old_row_back() -> None:
    run = Run(own_aggregate(TABLE))
    run.pipe("in", "a", {"V": 5})
    run.pipe("in", "a", {"V": 1})
    assert [entry[1] for _, entry in run.driver.stores("aggregate")[0].all()] == [[["a", 10]]]


def test_rows_are_delivered_to_whoever_runs_the_plan() -> None:
    source = read("in", STREAM, COLUMNS)
    end = nodes.Deliver(name="end", schema=source.schema, kind=STREAM, input=source)
    run = Run(Plan((end,)))
    run.pipe("in", "a", {"V": 1}, 7)
    (row,) = run.driver.delivered
    assert (row.key, row.value, row.timestamp) == (("a",), (1,), 7)


def test_a_plan_may_have_several_sinks_and_read_what_it_writes() -> None:
    source = read("in", STREAM, COLUMNS)
    (one,) = write(source, "middle").sinks
    middle = read("middle", STREAM, Schema(COLUMNS.key, COLUMNS.value))
    (two,) = write(middle, "out").sinks
    run = Run(Plan((one, replace(two, name="last"))))
    run.pipe("in", "a", {"V": 1}, 7)
    assert run.new() == [("a", {"V": 1}, 7)]
