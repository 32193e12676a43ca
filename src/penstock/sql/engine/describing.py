"""SHOW, DESCRIBE and EXPLAIN: what there is, in ksqlDB's shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import singledispatch
from typing import Any, Final

from penstock.sql.analysis.legacy import is_legacy
from penstock.sql.analysis.names import nearest
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import alternatives
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import Entity, entity, source_description, sources_entity
from penstock.sql.engine.explaining import PERSISTENT, explain, query_description
from penstock.sql.engine.options import SQL_OPTIONS, STREAMS
from penstock.sql.engine.state import PersistentQuery
from penstock.sql.engine.world import World
from penstock.sql.parsing import statements as st
from penstock.streams.functions.descriptions import describe as function_called
from penstock.streams.functions.descriptions import described as all_functions
from penstock.streams.plan.sources import Source, SourceKind

# Topics that the server makes for itself.
LOGIN: Final = re.compile(r"//[^/@,]*@")
"""Of an address, with its password."""
HIDDEN_PREFIXES = ("_confluent-ksql-", "_confluent", "__")


@singledispatch
def describe(
    statement: st.Statement, engine: Engine, world: World, properties: Mapping[str, str]
) -> Entity | None:
    raise StatementRefused(f"This server does not answer statements of this kind: {statement.text}")


@describe.register
def _(s: st.ShowTopics, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    names = [
        topic.name
        for topic in engine.cluster.topics.list(internal=s.all)
        if s.all or not topic.name.startswith(HIDDEN_PREFIXES)
    ]
    found = engine.cluster.topics.describe(*sorted(names))
    rows: list[dict[str, Any]] = [
        {"name": topic.name, "replicaInfo": [len(each.replicas) for each in topic.partitions]}
        for topic in found
    ]
    if not s.extended:
        return entity("kafka_topics", s.text, topics=rows)
    consumers: dict[str, int] = {}
    groups: dict[str, set[str]] = {}
    for group in engine.cluster.groups.lag():
        for part in group.partitions:
            name = part.partition.topic
            groups.setdefault(name, set()).add(group.group.group_id)
            consumers[name] = consumers.get(name, 0) + 1
    for row in rows:
        row["consumerCount"] = consumers.get(row["name"], 0)
        row["consumerGroupCount"] = len(groups.get(row["name"], ()))
    return entity("kafka_topics_extended", s.text, topics=rows)


@describe.register(st.ShowStreams)
@describe.register(st.ShowTables)
def _(
    s: st.ShowStreams | st.ShowTables, engine: Engine, world: World, properties: Mapping[str, str]
) -> Entity:
    kind = SourceKind.STREAM if isinstance(s, st.ShowStreams) else SourceKind.TABLE
    if s.extended:
        return _descriptions(s, engine, world, kind, extended=True)
    found = sorted(engine.state.sources.values(), key=lambda source: source.name)
    return sources_entity(s.text, kind, found, is_legacy=is_legacy(world))


@describe.register(st.DescribeStreams)
@describe.register(st.DescribeTables)
def _(
    s: st.DescribeStreams | st.DescribeTables, engine: Engine, world: World, properties: Mapping[str, str]
) -> Entity:
    kind = SourceKind.STREAM if isinstance(s, st.DescribeStreams) else SourceKind.TABLE
    return _descriptions(s, engine, world, kind, extended=s.extended)


def _descriptions(
    s: st.Statement, engine: Engine, world: World, kind: SourceKind, *, extended: bool
) -> Entity:
    found = [
        _description(source, engine, world, extended=extended)
        for source in sorted(engine.state.sources.values(), key=lambda source: source.name)
        if source.kind is kind
    ]
    return entity("source_descriptions", s.text, sourceDescriptions=found)


@describe.register
def _(s: st.Describe, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    source = engine.state.sources.get(s.name)
    if source is None:
        raise StatementRefused(
            f"Could not find STREAM/TABLE '{s.name}' in the Metastore{alternatives(s.name, world)}"
        )
    return entity(
        "sourceDescription",
        s.text,
        sourceDescription=_description(source, engine, world, extended=s.extended),
    )


def _description(source: Source, engine: Engine, world: World, *, extended: bool) -> dict[str, Any]:
    state = engine.state
    found = source_description(
        source,
        extended=extended,
        partitions=(world.topic_partitions(source.topic) or 0) if extended else 0,
        replication=(world.topic_replicas(source.topic) or 0) if extended else 0,
        read_queries=[_running(engine, state.queries[each]) for each in state.readers_of(source.name)],
        write_queries=[_running(engine, state.queries[each]) for each in state.writers_of(source.name)],
        constraints=sorted(
            {
                query.sink
                for query in state.queries.values()
                if source.name in query.reads and not query.is_insert
            }
        ),
        offsets=_offsets(source, engine) if extended else (),
    )
    if is_legacy(world):
        key = source.schema.key[0].name if source.schema.key else ""
        found |= {"key": key, "format": source.formats.value.name}
    return found


def _offsets(source: Source, engine: Engine) -> list[dict[str, Any]]:
    """Of the query that makes it: how far it is behind the topics that it reads."""
    query = engine.state.query_of_source(source.name)
    if query is None:
        return []
    group_id = engine.options.application_id(query.id)
    topics: dict[str, list[dict[str, Any]]] = {}
    try:
        (group,) = engine.cluster.groups.lag(group_id)
    except Exception:
        return []  # it has not committed anything yet
    for part in group.partitions:
        topics.setdefault(part.partition.topic, []).append(
            {
                "partition": part.partition.partition,
                "logEndOffset": part.end_offset,
                "consumerOffset": 0 if part.committed is None else part.committed.offset,
            }
        )
    found = [{"kafkaTopic": name, "offsets": offsets} for name, offsets in sorted(topics.items())]
    return [{"groupId": group_id, "topicSummaries": found}]


@describe.register
def _(s: st.ShowQueries, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    queries = list(engine.state.queries.values())
    if s.extended:
        found = [query_description(query, engine) for query in queries]
        return entity("queryDescriptions", s.text, queryDescriptions=found)
    rows = [_running(engine, query) for query in queries] + engine.pushes()
    return entity("queries", s.text, queries=rows)


def _running(engine: Engine, query: PersistentQuery) -> dict[str, Any]:
    state = engine.queries.state_of(query).value
    return {
        "queryString": query.statement,
        "sinks": [query.sink] if query.sink else [],
        "sinkKafkaTopics": [query.sink_topic] if query.sink_topic else [],
        "id": query.id,
        "statusCount": {state: 1},
        "queryType": PERSISTENT,
        "state": state,
    }


@describe.register
def _(s: st.Explain, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    return explain(s, engine, world)


@describe.register
def _(s: st.ShowProperties, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    rows, overwritten, defaults = [], [], []
    for option in SQL_OPTIONS:
        now = world.property(option.name) or ""
        rows.append(_property(option.name, now))
        if option.name in properties or option.name.removeprefix(STREAMS) in properties:
            overwritten.append(option.name)
        elif engine.options[option.name] == option.default and option.name not in engine.state.properties:
            defaults.append(option.name)
    known = {row["name"] for row in rows}
    for name, value in _others(engine, properties):
        if name not in known and STREAMS + name not in known:
            rows.append(_property(name, value))
            if name in properties:
                overwritten.append(name)
    return entity(
        "properties", s.text, properties=rows, overwrittenProperties=overwritten, defaultProperties=defaults
    )


def _others(engine: Engine, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from engine.state.properties.items()
    yield from properties.items()


def _property(name: str, value: str) -> dict[str, Any]:
    shown = LOGIN.sub("//", value) if name.endswith(".url") else value
    return {"name": name, "scope": "KSQL", "value": shown, "editable": False, "level": "SERVER"}


@describe.register
def _(s: st.ShowTypes, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    from penstock.sql.engine.entities import type_document

    found = {name: type_document(type_) for name, type_ in sorted(engine.state.types.items())}
    return entity("type_list", s.text, types=found)


@describe.register
def _(s: st.ShowFunctions, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    found = [{"name": each.name, "type": each.kind, "category": each.category} for each in all_functions()]
    return entity("function_names", s.text, functions=found)


@describe.register
def _(s: st.DescribeFunction, engine: Engine, world: World, properties: Mapping[str, str]) -> Entity:
    found = function_called(s.name)
    if found is None:
        names = [each.name for each in all_functions()]
        raise StatementRefused(
            f"Can't find any functions with the name '{s.name}'{nearest(s.name.upper(), names)}"
        )
    variations = [
        {
            "arguments": [
                {"name": each.name, "type": each.type, "description": "", "isVariadic": each.is_variadic}
                for each in one.arguments
            ],
            "returnType": one.return_type,
            "description": one.about,
        }
        for one in found.signatures
    ]
    return entity(
        "describe_function",
        s.text,
        name=found.name,
        description=found.about,
        author="Penstock",
        version="",
        path="internal",
        functions=variations,
        type=found.kind,
    )
