"""A plan explains itself: as text, each step above those it takes its rows from, and as a drawing.

    print(as_text(plan))                 print(as_drawing(plan))

     > [ WRITE ] visits: topic VISITS    flowchart TD
         > [ AGGREGATE ] count           ...

The drawing is Mermaid: sites of documentation, GitHub and editors show it as a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import Expression
from penstock.streams.plan.nodes import TABLE, Node, Plan
from penstock.streams.plan.sources import Formats, Window, WindowKind

INDENT: Final = "\t\t"


def as_text(plan: Plan) -> str:
    """A step that several others read stands below the first of them; the others name it."""
    lines: list[str] = []
    told: set[str] = set()
    for sink in plan.sinks:
        lines += _lines(sink, 0, told)
    return "\n".join(lines) + "\n"


def _lines(node: Node, depth: int, told: set[str]) -> Iterator[str]:
    head = f"{INDENT * depth} > [ {kind_of(node)} ]"
    if node.name in told:
        yield f"{head} {node.name}, as above"
        return
    told.add(node.name)
    details = "; ".join(details_of(node))
    yield f"{head} | Schema: {node.schema} | {node.name}" + (f": {details}" if details else "")
    for each in nodes.inputs(node):
        yield from _lines(each, depth + 1, told)


def as_drawing(plan: Plan) -> str:
    """Topics are cylinders, repartitions go through one; tables have double walls."""
    lines = ["flowchart TD"]
    ids = {node.name: f"n{number}" for number, node in enumerate(plan.nodes())}
    for node in plan.nodes():
        lines += _drawn(node, ids)
    return "\n".join(lines) + "\n"


def _drawn(node: Node, ids: dict[str, str]) -> Iterator[str]:
    own = ids[node.name]
    label = _quoted("<br/>".join((f"<b>{kind_of(node)}</b>", *details_of(node))))
    yield f"    {own}[[{label}]]" if node.kind is TABLE else f"    {own}[{label}]"
    match node:
        case nodes.Read():
            yield f"    t{own}[({_quoted(node.source.topic)})] --> {own}"
        case nodes.Write():
            yield f"    {own} --> t{own}[({_quoted(node.topic)})]"
        case _:
            pass
    sides = ("left", "right") if hasattr(node, "left") else ()
    for at, each in enumerate(nodes.inputs(node)):
        if isinstance(node, nodes.Repartition):
            yield f"    {ids[each.name]} --> t{own}[({_quoted(node.name + '-repartition')})] --> {own}"
        else:
            yield f"    {ids[each.name]} -->{f'|{sides[at]}|' if sides else ''} {own}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "#quot;").replace("`", "#96;") + '"'


def kind_of(node: Node) -> str:
    """SELECT_KEY, STREAM_TABLE_JOIN …"""
    name = type(node).__name__
    return "".join(f"_{each}" if each.isupper() and at else each for at, each in enumerate(name)).upper()


def details_of(node: Node) -> tuple[str, ...]:
    describe = _DETAILS.get(type(node))
    return tuple(describe(node)) if describe is not None else ()


def _read(node: nodes.Read) -> Iterator[str]:
    yield f"{node.source.kind.lower()} {node.source.name}, topic {node.source.topic}, {_formats(node.source.formats)}"
    if node.source.timestamp is not None:
        yield f"time of {node.source.timestamp.column}"
    if node.window is not None:
        yield f"keys of {node.window.kind} windows"


def _write(node: nodes.Write) -> Iterator[str]:
    yield f"topic {node.topic}, {_formats(node.formats)}"
    if node.timestamp is not None:
        yield f"time of {node.timestamp.column}"


def _formats(formats: Formats) -> str:
    return f"key {formats.key.name}, value {formats.value.name}"


def _filter(node: nodes.Filter) -> Iterator[str]:
    yield f"where {node.predicate!s}"


def _items(node: nodes.Project | nodes.Explode) -> Iterator[str]:
    names = [column.name for column in node.schema.value]
    yield ", ".join(map(_named, node.items, names))


def _named(item: Expression, name: str) -> str:
    text = str(item)
    return text if text == name else f"{text} AS {name}"


def _keys(node: nodes.SelectKey | nodes.RegroupTable) -> Iterator[str]:
    yield "by " + (", ".join(map(str, node.keys)) or "nothing")


def _repartition(node: nodes.Repartition) -> Iterator[str]:
    yield f"through {node.name}-repartition, key {node.formats.key.name}"


def _aggregate(node: nodes.Aggregate) -> Iterator[str]:
    yield ", ".join(
        f"{call.function}({', '.join(map(str, (*call.arguments, *call.parameters)))})" for call in node.calls
    )
    if node.window is not None:
        yield window_text(node.window)


def window_text(window: Window) -> str:
    """As a statement says it, in milliseconds."""
    parts = [f"{'SIZE ' if window.kind is not WindowKind.SESSION else ''}{window.size_ms} MILLISECONDS"]
    if window.kind is WindowKind.HOPPING:
        parts.append(f"ADVANCE BY {window.advance_ms} MILLISECONDS")
    if window.retention_ms is not None:
        parts.append(f"RETENTION {window.retention_ms} MILLISECONDS")
    if window.grace_ms is not None:
        parts.append(f"GRACE PERIOD {window.grace_ms} MILLISECONDS")
    return f"{window.kind} ({', '.join(parts)})"


def _stream_join(node: nodes.StreamStreamJoin) -> Iterator[str]:
    within = f"{node.join} within {node.before_ms} ms before and {node.after_ms} ms after"
    yield within if node.grace_ms is None else f"{within}, grace {node.grace_ms} ms"


def _table_join(node: nodes.StreamTableJoin | nodes.TableTableJoin) -> Iterator[str]:
    yield str(node.join)
    if isinstance(node, nodes.StreamTableJoin) and node.is_global:
        yield f"whole table, asked by {', '.join(map(str, node.left_key))}"


def _foreign_key(node: nodes.ForeignKeyJoin) -> Iterator[str]:
    yield f"{node.join} by {node.left_key!s}"


_DETAILS: Final[dict[type[Node], Callable[[Any], Iterator[str]]]] = {
    nodes.Read: _read,
    nodes.Write: _write,
    nodes.Filter: _filter,
    nodes.Project: _items,
    nodes.Explode: _items,
    nodes.SelectKey: _keys,
    nodes.RegroupTable: _keys,
    nodes.Repartition: _repartition,
    nodes.Aggregate: _aggregate,
    nodes.StreamStreamJoin: _stream_join,
    nodes.StreamTableJoin: _table_join,
    nodes.TableTableJoin: _table_join,
    nodes.ForeignKeyJoin: _foreign_key,
}
