"""`task.Task` for a subtopology: its nodes as functions that call one another, from the topics to the sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.streams.functions.scope import in_scope
from penstock.streams.kernel.building import Building, Emit
from penstock.streams.kernel.needs import Needs
from penstock.streams.kernel.operators import (
    aggregates,
    exploding,
    foreign_keys,
    python_steps,
    reading,
    rows,
    stream_joins,
    suppressing,
    table_joins,
    writing,
)
from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.stores import Store
from penstock.streams.kernel.task import OnError
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node, Plan


def _nobody(row: Row) -> None:
    """Whoever reads the node looks it up in its view."""


class PlanTask:
    def __init__(
        self,
        own: tuple[Node, ...],
        plan: Plan,
        *,
        partition: int,
        stores: Mapping[str, Store],
        output: Callable[[OutputRecord], None],
        on_error: OnError,
        registry: Any,
        topic_names: Callable[[str], str],
        deliver: Callable[[Row], None] | None,
        stream_time: int,
    ) -> None:
        self._building = Building(
            Needs(plan),
            partition=partition,
            store=stores.__getitem__,
            output=output,
            on_error=on_error,
            topic_names=topic_names,
            registry=registry,
            stream_time=stream_time,
            properties=plan.properties,
            deliver=deliver,
        )
        self._own = {node.name for node in own}
        self._inputs: dict[tuple[str, int], Emit] = {}
        with in_scope(plan.functions):
            for node in reversed(own):  # those who take rows before those who give them
                self._build(node)
        self._entries = {
            topic: entries[0] if len(entries) == 1 else _all(entries)
            for topic, entries in self._building.entries.items()
        }
        self._restores = self._building.restores

    def process(self, record: InputRecord) -> None:
        self._entries[record.topic](record)

    def restore(self, record: InputRecord) -> None:
        for entry in self._restores.get(record.topic, ()):
            entry(record)

    def flush(self) -> None:
        for clock in self._building.clocks:
            clock.flush()

    def due_ms(self) -> int | None:
        """When a timer by the wall clock is due; None: there is none."""
        return min((due for each in self._building.timed if (due := each.due_ms()) is not None), default=None)

    def punctuate(self, now_ms: int) -> None:
        for each in self._building.timed:
            each.punctuate(now_ms)

    def stream_time(self) -> int:
        return self._building.stream_time

    def _emit_of(self, node: Node) -> Emit:
        """To all who read the node, in the order of the plan."""
        takers = [self._taker(reader, at, node) for reader, at in self._building.needs.readers(node)]
        takers = [taker for taker in takers if taker is not None]
        if len(takers) == 1:
            return takers[0]
        return _all(takers) if takers else _nobody

    def _taker(self, reader: Node, at: int, node: Node) -> Emit:
        if isinstance(reader, nodes.Repartition):
            return writing.send_on(reader, self._building)
        if isinstance(reader, nodes.ForeignKeyJoin) and at == 1:
            return foreign_keys.RightSide(reader, self._building).change
        if reader.name not in self._own:
            return _nobody
        return self._inputs[reader.name, at]

    def _build(self, node: Node) -> None:
        building, emit = self._building, self._emit_of(node)
        if isinstance(node, nodes.Read):
            reading.read(node, building, emit)
        elif isinstance(node, nodes.Repartition):
            writing.receive(node, building, emit)
        else:
            for at, handler in enumerate(self._handlers(node, emit)):
                self._inputs[node.name, at] = handler

    def _handlers(self, node: Node, emit: Emit) -> tuple[Emit, ...]:
        """One for each input."""
        building = self._building
        match node:
            case nodes.Merge():
                return (emit,) * len(node.inputs)
            case nodes.StreamStreamJoin():
                return stream_joins.stream_stream_join(node, building, emit)
            case nodes.StreamTableJoin():
                return table_joins.stream_table_join(node, building, emit), _nobody
            case nodes.TableTableJoin():
                return table_joins.table_table_join(node, building, emit)
            case nodes.ForeignKeyJoin():
                return (foreign_keys.LeftSide(node, building, emit).change,)
            case nodes.Write():
                return (writing.write(node, building),)
            case nodes.Deliver():
                return (python_steps.deliver(node, building),)
            case _:
                return (STEPS[type(node)](node, building, emit),)


STEPS: dict[type[Node], Callable[[Any, Building, Emit], Emit]] = {
    nodes.Filter: rows.filter_rows,
    nodes.Project: rows.project,
    nodes.Explode: exploding.explode,
    nodes.SelectKey: rows.select_key,
    nodes.RegroupTable: rows.regroup,
    nodes.ToStream: rows.to_stream,
    nodes.ToTable: rows.to_table,
    nodes.Aggregate: aggregates.aggregate,
    nodes.Suppress: suppressing.suppress,
    nodes.PythonStep: python_steps.python_step,
    nodes.PythonProcessor: python_steps.python_processor,
}


def _all(takers: list[Any]) -> Callable[[Any], None]:
    def process(one: Any) -> None:
        for taker in takers:
            taker(one)

    return process
