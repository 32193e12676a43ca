"""Plans by hand, in few words, and a driver whose records are JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.streams.kernel.driver import Driver
from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import Call, ColumnRef, Comparison, Expression, Literal
from penstock.streams.plan.nodes import STREAM, TABLE, AggregateCall, Node, Plan
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind, Window, WindowKind
from penstock.streams.plan.types import BIGINT, INTEGER, STRING, SqlType

JSON = Formats(Format("JSON"), Format("JSON"))
KEY = (Column("ID", STRING),)


def schema(*value: tuple[str, SqlType], key: tuple[Column, ...] = KEY) -> Schema:
    return Schema(key, tuple(Column(*each) for each in value))


def read(
    topic: str, kind: SourceKind, columns: Schema, *, window: Window | None = None, name: str = ""
) -> nodes.Read:
    source = Source(topic.upper(), kind, topic, columns, JSON, window=window)
    return nodes.Read(name=name or f"read-{topic}", schema=columns, kind=kind, source=source, window=window)


def write(node: Node, topic: str = "out") -> Plan:
    sink = nodes.Write(
        name=f"write-{topic}",
        schema=node.schema,
        kind=node.kind,
        window=node.window,
        input=node,
        topic=topic,
        formats=JSON,
    )
    return Plan((sink,))


def col(name: str) -> ColumnRef:
    return ColumnRef(name)


def over(name: str, least: int) -> Expression:
    return Comparison(">", col(name), Literal(least, INTEGER))


def where(node: Node, predicate: Expression, name: str = "filter") -> nodes.Filter:
    return nodes.Filter(
        name=name, schema=node.schema, kind=node.kind, window=node.window, input=node, predicate=predicate
    )


def select(node: Node, *items: tuple[str, SqlType, Expression], name: str = "project") -> nodes.Project:
    columns = Schema(node.schema.key, tuple(Column(each, type_) for each, type_, _ in items))
    return nodes.Project(
        name=name,
        schema=columns,
        kind=node.kind,
        window=node.window,
        input=node,
        items=tuple(item for _, _, item in items),
    )


def by(node: Node, column: str, name: str = "by") -> nodes.SelectKey:
    """The stream with a column as its key; the value keeps what it has."""
    type_ = node.schema.type_of(column)
    assert type_ is not None
    return nodes.SelectKey(
        name=name,
        schema=Schema((Column(f"{column}_KEY", type_),), node.schema.value),
        kind=STREAM,
        window=node.window,
        input=node,
        keys=(col(column),),
        items=tuple(col(each.name) for each in node.schema.value),
    )


def regroup(node: Node, column: str, name: str = "regroup") -> nodes.RegroupTable:
    type_ = node.schema.type_of(column)
    assert type_ is not None
    return nodes.RegroupTable(
        name=name,
        schema=Schema((Column(f"{column}_KEY", type_),), node.schema.value),
        kind=TABLE,
        input=node,
        keys=(col(column),),
        items=tuple(col(each.name) for each in node.schema.value),
    )


def through(node: Node, name: str = "through") -> nodes.Repartition:
    return nodes.Repartition(
        name=name, schema=node.schema, kind=node.kind, window=node.window, input=node, formats=JSON
    )


COUNT = ("N", AggregateCall("COUNT", (Literal(1, INTEGER),), (), BIGINT))


def total(column: str) -> tuple[str, AggregateCall]:
    return "TOTAL", AggregateCall("SUM", (col(column),), (), BIGINT)


def listed(column: str) -> tuple[str, AggregateCall]:
    from penstock.streams.plan.types import array

    return "LISTED", AggregateCall("COLLECT_LIST", (col(column),), (), array(BIGINT))


def aggregate(
    node: Node, *calls: tuple[str, AggregateCall], window: Window | None = None, name: str = "aggregate"
) -> nodes.Aggregate:
    columns = Schema(node.schema.key, tuple(Column(each, call.type) for each, call in calls))
    return nodes.Aggregate(
        name=name,
        schema=columns,
        kind=TABLE,
        window=window,
        input=node,
        calls=tuple(call for _, call in calls),
    )


def tumbling(size_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.TUMBLING, size_ms, grace_ms=grace_ms)


def hopping(size_ms: int, advance_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.HOPPING, size_ms, advance_ms, grace_ms=grace_ms)


def session(gap_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.SESSION, gap_ms, grace_ms=grace_ms)


def sliding(size_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.SLIDING, size_ms, grace_ms=grace_ms)


def function(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments)


class Run:
    """Records in and out as Python values."""

    def __init__(self, plan: Plan, partitions: int | Mapping[str, int] = 1) -> None:
        self.driver = Driver(plan, partitions=partitions)
        self._seen = 0

    def pipe(self, topic: str, key: Any, value: Any, timestamp: int = 0) -> None:
        self.driver.pipe(
            topic,
            key=None if key is None else json.dumps(key).encode(),
            value=None if value is None else json.dumps(value).encode(),
            timestamp=timestamp,
        )

    def new(self, topic: str = "out") -> list[Any]:
        """(key, value, timestamp) of what came since the last call; a windowed key as (key, start[, end])."""
        records = self.driver.outputs(topic)
        found = [
            (_key(each.key), None if each.value is None else json.loads(each.value), each.timestamp)
            for each in records
        ]
        found, self._seen = found[self._seen :], len(found)
        return found


def _key(data: bytes | None) -> Any:
    if data is None:
        return None
    for windows in (0, 8, 16):
        try:
            key = json.loads(data[: len(data) - windows])
        except ValueError:
            continue
        if windows == 0:
            return key
        times = [int.from_bytes(data[at : at + 8], "big") for at in range(len(data) - windows, len(data), 8)]
        return (key, *reversed(times))
    raise AssertionError(data)
