"""CREATE OR REPLACE of a query: what may change while its state stays.

Filters, projections and expressions may be others. Whatever is kept in stores or lies in topics between the query's parts has to
be the same: the sources, the keys and columns there, the aggregates, the windows, the kinds of joins.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from penstock.sql.analysis.refusals import StatementRefused
from penstock.streams.plan import nodes as n
from penstock.streams.plan.sources import SourceKind

_JOINS: Final = (n.StreamStreamJoin, n.StreamTableJoin, n.TableTableJoin, n.ForeignKeyJoin)
_KEPT: Final = (n.Aggregate, n.Repartition, n.Suppress, *_JOINS)
_OTHER: Final = ("input", "left", "right", "inputs", "place", "name")


def check_upgrade(old: n.Plan, new: n.Plan) -> None:
    before, after = _kept(old), _kept(new)
    _check_sources(old, new)
    for name, node in before.items():
        other = after.get(name)
        if other is None or type(other) is not type(node):
            raise StatementRefused(
                f"Query is not upgradeable. Its step {name} ({_kind(node)}) has state, and is not there any more."
            )
        _check_same(node, other)
    added = next((node for name, node in after.items() if name not in before), None)
    if added is not None:
        raise StatementRefused(
            f"Query is not upgradeable. Its new step {added.name} ({_kind(added)}) has state that nobody has kept so far."
        )


def _kept(plan: n.Plan) -> dict[str, n.Node]:
    return {node.name: node for node in plan.nodes() if isinstance(node, _KEPT)}


def _kind(node: n.Node) -> str:
    return type(node).__name__


def _check_sources(old: n.Plan, new: n.Plan) -> None:
    topics = [
        sorted(
            (node.source.topic, node.kind == SourceKind.TABLE)
            for node in plan.nodes()
            if isinstance(node, n.Read)
        )
        for plan in (old, new)
    ]
    if topics[0] != topics[1]:
        shown = [", ".join(topic for topic, _ in each) for each in topics]
        raise StatementRefused(
            f"Query is not upgradeable. It must read the same topics. Values differ: {shown[0]} vs. {shown[1]}"
        )


def _check_same(old: n.Node, new: n.Node) -> None:
    for each in fields(old):
        if each.name in _OTHER:
            continue
        a, b = getattr(old, each.name), getattr(new, each.name)
        if a != b:
            raise StatementRefused(
                f"Query is not upgradeable. Plan step of type {_kind(old)} must have matching {each.name}. "
                f"Values differ: {_shown(a)} vs. {_shown(b)}"
            )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    if isinstance(value, n.AggregateCall):
        given = [*(str(each) for each in value.arguments), *(str(each) for each in value.parameters)]
        return f"{value.function}({', '.join(given)})"
    return str(value)
