"""Subtopologies as Kafka Streams describes them: the text that its tools, and drawers of topologies, read."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.streams.kernel.operators.foreign_keys import answer_topic, subscription_topic
from penstock.streams.kernel.operators.writing import repartition_topic
from penstock.streams.kernel.topology import Subtopology, cut
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node, Plan


def describe(plan: Plan) -> str:
    lines = ["Topologies:"]
    for part in cut(plan):
        lines += _part(part, plan)
    return "\n".join(lines) + "\n"


def _part(part: Subtopology, plan: Plan) -> Iterator[str]:
    yield f"   Sub-topology: {part.number}"
    for node in part.nodes:
        yield from _node(node, part, plan)
    yield ""


def _node(node: Node, part: Subtopology, plan: Plan) -> Iterator[str]:
    takers = [
        f"{each.name}-sink" if isinstance(each, nodes.Repartition) else each.name
        for each in plan.nodes()
        if any(one.name == node.name for one in nodes.inputs(each))
    ]
    after = f"      --> {', '.join(takers) or 'none'}"
    before = f"      <-- {', '.join(each.name for each in nodes.inputs(node)) or 'none'}"
    match node:
        case nodes.Read():
            yield f"    Source: {node.name} (topics: [{node.source.topic}])"
            yield after
        case nodes.Repartition():
            yield f"    Source: {node.name} (topics: [{repartition_topic(node)}])"
            yield after
        case nodes.Write():
            yield f"    Sink: {node.name} (topic: {node.topic})"
            yield before
        case _:
            stores = [
                spec.name
                for spec in part.stores
                if spec.name == node.name or spec.name.startswith(f"{node.name}-")
            ]
            yield f"    Processor: {node.name} (stores: [{', '.join(stores)}])"
            yield after
            yield before
    for each in plan.nodes():
        if isinstance(each, nodes.Repartition) and each.input.name == node.name:
            yield f"    Sink: {each.name}-sink (topic: {repartition_topic(each)})"
            yield f"      <-- {node.name}"
    if isinstance(node, nodes.ForeignKeyJoin):
        yield f"    Sink: {node.name}-subscriptions (topic: {subscription_topic(node)})"
        yield f"      <-- {node.name}"
        yield f"    Source: {node.name}-responses (topics: [{answer_topic(node)}])"
        yield f"      --> {node.name}"
