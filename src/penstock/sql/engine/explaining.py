"""EXPLAIN, and the queries of SHOW QUERIES EXTENDED: a plan as text, where it runs, and why there.

`tier` is ours: LONG_TASKS (on Spark), SERVER (a push query), VIEW and TOPICS (a pull query). ksqlDB's clients leave it alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from penstock.sql.analysis.legacy import as_push
from penstock.sql.analysis.names import nearest
from penstock.sql.analysis.pulling import Lookup, analyze_pull
from penstock.sql.analysis.queries import plan_push, plan_query
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import Entity, entity, fields
from penstock.sql.engine.state import PersistentQuery
from penstock.sql.engine.world import World
from penstock.sql.parsing import statements as st
from penstock.streams.kernel.description import describe as topology_text
from penstock.streams.kernel.topology import cut
from penstock.streams.plan import nodes
from penstock.streams.plan.explain import as_drawing, as_text
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import SourceKind

PERSISTENT, PUSH, PULL = "PERSISTENT", "PUSH", "PULL"
ID: Final = "EXPLAIN"


class Tier(NamedTuple):
    name: str
    reason: str


def explain(s: st.Explain, engine: Engine, world: World) -> Entity:
    if s.query_id is not None:
        query = engine.state.queries.get(s.query_id)
        if query is None:
            raise StatementRefused(
                f"Query with id:{s.query_id} does not exist, use SHOW QUERIES to view the full set of queries."
                + nearest(s.query_id, engine.state.queries)
            )
        return entity("queryDescription", s.text, queryDescription=query_description(query, engine))
    match s.statement:
        case st.Select() as select:
            document = _selected(select, world)
        case st.CreateAsSelect() | st.InsertInto() as inner:
            planned = plan_query(inner, world, ID)
            document = _document(
                inner.text,
                planned.plan,
                planned.sink.schema,
                planned.reads,
                PERSISTENT,
                of_tasks(planned.plan),
            )
            document["sinks"] = [planned.sink.name]
        case _:
            raise StatementRefused("The provided statement does not run a ksql query")
    return entity("queryDescription", s.text, queryDescription=document)


def _selected(select: st.Select, world: World) -> dict[str, Any]:
    select = as_push(select, world)
    if select.emit is not None:
        push = plan_push(select, world, f"transient_{ID}")
        tier = Tier("SERVER", "a push query ends with its client, so this server runs it for that long")
        return _document(select.text, nodes.Plan((push.node,)), push.schema, push.reads, PUSH, tier)
    pull = analyze_pull(select, world, f"transient_{ID}")
    if pull.lookup is not None:
        document = _document(select.text, None, pull.columns(), pull.reads, PULL, of_lookup(pull.lookup))
        window = pull.lookup.source.window
        document["windowType"] = None if window is None else window.kind.value
        document["executionPlan"] = _lookup_text(pull.lookup)
        return document
    assert pull.plan is not None
    plan = nodes.Plan((pull.plan.node,))
    tier = Tier("TOPICS", f"{_need(plan)}, so its topics are read up to where they end now")
    return _document(select.text, plan, pull.columns(), pull.reads, PULL, tier)


def query_description(query: PersistentQuery, engine: Engine) -> dict[str, Any]:
    state = engine.queries.state_of(query).value
    if query.planned is None:
        document = _document(query.statement, None, Schema((), ()), (), PERSISTENT, None)
    else:
        plan, schema = query.planned.plan, query.planned.sink.schema
        document = _document(query.statement, plan, schema, query.reads, PERSISTENT, of_tasks(plan))
        document["sinks"] = [query.sink]
    errors = [
        {"timestamp": each.time_ms, "errorMessage": each.message, "type": "UNKNOWN"}
        for each in engine.queries.errors_of(query)
    ]
    return document | {
        "id": query.id,
        "overriddenProperties": query.properties,
        "queryErrors": errors,
        "state": state,
        "ksqlHostQueryStatus": {engine.address: state},
        "consumerGroupId": engine.options.application_id(query.id),
    }


def of_tasks(plan: nodes.Plan) -> Tier:
    if any(part.stores for part in cut(plan)):
        reason = "each change of a row is told at once, and state is in the task that has its partition"
    else:
        reason = "it keeps no state, and a row goes on as soon as it is read"
    return Tier("LONG_TASKS", reason)


def of_lookup(lookup: Lookup) -> Tier:
    if lookup.source.kind is not SourceKind.TABLE:
        return Tier("TOPICS", "a stream has no view, so its topic is read up to where it ends now")
    if lookup.keys is not None:
        return Tier("VIEW", "WHERE names the keys, and the server keeps the table's newest rows")
    if lookup.key_range is not None:
        return Tier(
            "VIEW", "WHERE names a range of keys, and the server keeps the table's newest rows in their order"
        )
    return Tier("VIEW", "no key is named, so all of the table's newest rows are looked at")


def _need(plan: nodes.Plan) -> str:
    found = {type(node) for node in plan.nodes()}
    for kinds, words in (
        (
            (nodes.StreamStreamJoin, nodes.StreamTableJoin, nodes.TableTableJoin, nodes.ForeignKeyJoin),
            "rows are joined",
        ),
        ((nodes.Aggregate,), "rows are grouped"),
        ((nodes.Explode,), "a table function makes rows"),
    ):
        if found.intersection(kinds):
            return words
    return "no view has such rows"


def _lookup_text(lookup: Lookup) -> str:
    source = lookup.source
    where = "all rows"
    if lookup.keys is not None:
        where = f"{len(lookup.keys)} key{'' if len(lookup.keys) == 1 else 's'}"
    elif lookup.key_range is not None:
        where = "a range of keys"
    name = f"{source.kind.lower()} {source.name}, topic {source.topic}"
    lines = [f" > [ PROJECT ] | Schema: {lookup.schema}"]
    if lookup.predicate is not None:
        lines.append(f"\t\t > [ FILTER ] | Schema: {source.schema} | where {lookup.predicate}")
    lines.append("\t\t" * len(lines) + f" > [ LOOK_UP ] | Schema: {source.schema} | {name}: {where}")
    return "\n".join(lines) + "\n"


def _document(
    statement: str,
    plan: nodes.Plan | None,
    schema: Schema,
    reads: tuple[str, ...],
    kind: str,
    tier: Tier | None,
) -> dict[str, Any]:
    topology, told, drawing = (
        ("", "", "") if plan is None else (topology_text(plan), as_text(plan), as_drawing(plan))
    )
    return {
        "id": ID,
        "statementText": statement,
        "windowType": None if plan is None else _window_type(plan),
        "fields": fields(schema),
        "sources": list(reads),
        "sinks": [],
        "topology": topology,
        "executionPlan": told,
        "drawing": drawing,  # ours: ksqlDB has none, and its clients leave it alone
        "tier": None if tier is None else tier.name,
        "tierReason": None if tier is None else tier.reason,
        "overriddenProperties": {},
        "ksqlHostQueryStatus": {},
        "queryType": kind,
        "queryErrors": [],
        "tasksMetadata": [],
        "state": None,
        "consumerGroupId": "",
    }


def _window_type(plan: nodes.Plan) -> str | None:
    return next((node.window.kind.value for node in plan.nodes() if node.window is not None), None)
