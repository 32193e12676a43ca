"""CREATE … AS SELECT, INSERT INTO … SELECT, and SELECT … EMIT CHANGES as plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import prefix_of, unprepared, within_depth
from penstock.sql.analysis.creating import (
    DEFAULT_KEY_FORMAT,
    WRAP_SINGLE_VALUES,
    check_existing_topic,
    timestamp_of,
    topic_configs,
)
from penstock.sql.analysis.formats import check_formats, inherited, value_wrapping
from penstock.sql.analysis.inference import checked_by_id
from penstock.sql.analysis.planned import PlannedPush, PlannedQuery
from penstock.sql.analysis.planning import Planned, planned
from penstock.sql.analysis.properties import OF_INSERT, OF_SINK, With, read_with
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import check_replaces
from penstock.sql.analysis.scopes import alternatives
from penstock.sql.analysis.types import resolved
from penstock.sql.analysis.upgrading import check_upgrade
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import CreateAsSelect, InsertInto, Select
from penstock.streams.functions import coercion
from penstock.streams.functions.coercion import converted
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.scope import added_functions
from penstock.streams.functions.typing import type_of
from penstock.streams.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from penstock.streams.plan.nodes import AggregateCall, Node, Plan, Project, Write
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import Formats, Source, SourceKind, Window
from penstock.streams.plan.types import Kind, SqlType

OUTPUT_TOPIC_PREFIX = "ksql.output.topic.name.prefix"
OF_FUNCTIONS = ("ksql.functions.collect_list.limit", "ksql.functions.collect_set.limit")


@within_depth
def plan_query(statement: CreateAsSelect | InsertInto, catalog: Catalog, query_id: str) -> PlannedQuery:
    statement = resolved(statement, catalog)
    if isinstance(statement, InsertInto):
        return _plan_insert(statement, catalog, query_id)
    return _plan_create(statement, catalog, query_id)


def with_functions(plan: Plan) -> Plan:
    """The plan takes along what it calls beside the built-in functions."""
    called = {name for node in plan.nodes() for name in _called(node)}
    return replace(plan, functions=tuple(each for each in added_functions() if each.name in called))


def _called(part: Any) -> Iterator[str]:
    """Names of functions in a node's own expressions, not in those of its inputs."""
    if isinstance(part, Call):
        yield part.name.upper()
    if isinstance(part, AggregateCall):
        yield part.function.upper()
    if isinstance(part, tuple):
        for each in part:
            if not isinstance(each, Node):
                yield from _called(each)
    elif isinstance(part, Node | Expression | AggregateCall):
        for each in fields(part):
            value = getattr(part, each.name)
            if not isinstance(value, Node):
                yield from _called(value)


def function_settings(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """What a plan takes along for its aggregates, as it is when the query is made."""
    found = ((name, catalog.property(name)) for name in OF_FUNCTIONS)
    return tuple((name, value) for name, value in found if value is not None)


@within_depth
def plan_push(select: Select, catalog: Catalog, query_id: str) -> PlannedPush:
    select = resolved(select, catalog)
    plan = planned(select, catalog, sink=None)
    node = plan.flow.node
    types = _types_of(plan)
    columns: list[tuple[str, bool, int]] = []
    items: list[Expression] = []
    values: list[Column] = []
    key_names = [column.name for column in node.schema.key]
    taken: set[str] = {f"KSQL_KEY_{at}" for at in range(len(key_names))}
    for each, type_ in zip(plan.result.values, types, strict=True):
        column = each.expression.name if isinstance(each.expression, ColumnRef) else None
        if column in key_names and not _shadowed(column, plan):
            columns.append((each.name, True, key_names.index(column)))
            continue
        columns.append((each.name, False, len(values)))
        values.append(Column(_unique(each.name, taken), type_))
        items.append(each.expression)
    keys = tuple(Column(f"KSQL_KEY_{at}", column.type) for at, column in enumerate(node.schema.key))
    project = _project(node, "Project", Schema(keys, tuple(values)), tuple(items))
    schema = Schema(
        (), tuple(Column(each.name, type_) for each, type_ in zip(plan.result.values, types, strict=True))
    )
    return PlannedPush(query_id, project, tuple(columns), schema, _reads(plan), select.limit)


def _shadowed(column: str | None, plan: Planned) -> bool:
    return any(each.name == column for each in plan.flow.node.schema.value)


def _unique(name: str, taken: set[str]) -> str:
    found = name
    while found in taken:
        found += "_"
    taken.add(found)
    return found


# ------------------------------------------------------------------------------------------------ CREATE … AS SELECT


def _plan_create(statement: CreateAsSelect, catalog: Catalog, query_id: str) -> PlannedQuery:
    given = read_with(statement.properties, OF_SINK)
    _check_existing(statement, catalog)
    plan = planned(statement.query, catalog, sink=statement.name)
    project = _sink_project(plan)
    if project.kind is not statement.kind:
        raise StatementRefused(
            f"Invalid result type. Your SELECT query produces a {project.kind}. "
            f"Please use CREATE {project.kind} AS SELECT statement instead."
        )
    first = plan.scope.first.source
    topic = given.text("KAFKA_TOPIC") or f"{catalog.property(OUTPUT_TOPIC_PREFIX) or ''}{statement.name}"
    formats = _sink_formats(statement, given, plan, project.schema, catalog)
    formats = checked_by_id(topic, project.schema, formats, given, catalog)
    check_formats(project.schema, formats)
    timestamp = timestamp_of(given, project.schema)
    sink = Source(
        name=statement.name,
        kind=project.kind,
        topic=topic,
        schema=project.schema,
        formats=formats,
        timestamp=timestamp,
        window=project.window,
        statement=statement.text,
        query_id=query_id,
    )
    made = with_functions(Plan((_write(project, sink),), function_settings(catalog)))
    existing = catalog.source(statement.name)
    if existing is not None and statement.or_replace:
        check_replaces(existing, sink)
        _check_query(existing, made, catalog)
    policy = _policy(sink)
    if given.text("CLEANUP_POLICY") is not None:
        raise StatementRefused(
            "Invalid config variable in the WITH clause: CLEANUP_POLICY.\nThe CLEANUP_POLICY config is automatically inferred "
            "based on the type of source (STREAM or TABLE).\nUsers can't set the CLEANUP_POLICY config manually."
        )
    if policy == "compact" and given.number("RETENTION_MS") is not None:
        raise StatementRefused(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not support retention."
        )
    is_there = catalog.topic_partitions(topic) is not None
    return PlannedQuery(
        query_id=query_id,
        plan=made,
        sink=sink,
        reads=_reads(plan),
        sink_partitions=None
        if is_there
        else given.number("PARTITIONS") or catalog.topic_partitions(first.topic) or 1,
        sink_replicas=None if is_there else given.number("REPLICAS") or catalog.topic_replicas(first.topic),
        sink_configs=() if is_there else _configs(given, sink, statement, policy),
    )


def check_sink_topic(statement: CreateAsSelect, planned_query: PlannedQuery, catalog: Catalog) -> None:
    """A sink's topic that is there already has the partitions that are wanted: those of WITH, else those of the first source.
    This is asked when a query is made, and not again when it starts once more."""
    topic = planned_query.sink.topic
    if catalog.topic_partitions(topic) is None or catalog.source(planned_query.sink.name) is not None:
        return
    given = read_with(statement.properties, OF_SINK)
    first = catalog.source(planned_query.reads[0])
    wanted = given.number("PARTITIONS") or (catalog.topic_partitions(first.topic) if first else None)
    check_existing_topic(topic, wanted, given.number("REPLICAS"), catalog)


def _check_query(existing: Source, plan: Plan, catalog: Catalog) -> None:
    """A query that takes the place of another keeps its state."""
    text = catalog.query_statement(existing.query_id) if existing.query_id is not None else None
    old = parse(text)[0] if text else None
    if isinstance(old, CreateAsSelect) and existing.query_id is not None:
        before = planned(resolved(old.query, catalog), catalog, sink=old.name)
        check_upgrade(Plan((_sink_project(before),)), plan)


def _check_existing(statement: CreateAsSelect, catalog: Catalog) -> None:
    existing = catalog.source(statement.name)
    if existing is None or statement.if_not_exists:
        return
    kind = statement.kind.lower()
    if not statement.or_replace:
        raise StatementRefused(
            f"Cannot add {kind} '{statement.name}': A {existing.kind.lower()} with the same name already exists"
        )
    if existing.is_read_only:
        raise StatementRefused(
            f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source {kind}s."
        )


def _policy(sink: Source) -> str:
    if sink.kind is SourceKind.STREAM:
        return "delete"
    return "compact" if sink.window is None else "compact,delete"


def _configs(
    given: With, sink: Source, statement: CreateAsSelect, policy: str
) -> tuple[tuple[str, str], ...]:
    configs = dict(topic_configs(given, sink.kind, policy=policy))
    window = statement.query.window
    if window is not None and window.retention_ms is not None:
        configs["retention.ms"] = str(max(window.retention_ms, int(configs.get("retention.ms", "0"))))
    return tuple(configs.items())


def _sink_formats(
    statement: CreateAsSelect, given: With, plan: Planned, schema: Schema, catalog: Catalog
) -> Formats:
    source = plan.scope.first.source.formats
    key_name = given.key_format or source.key.name
    if plan.is_keyless:
        if given.key_format is not None and given.key_format.upper() != "NONE":
            raise StatementRefused("Key format specified for stream without key columns.")
        key_name = "NONE"
    value_name = given.value_format or source.value.name
    key = inherited(
        key_name, given.format_properties("KEY", key_name, avro_key_of=statement.name), source.key
    )
    value = inherited(value_name, given.format_properties("VALUE", value_name), source.value)
    if given.key_format is None and key.name == "NONE" and schema.key:
        default = catalog.property(DEFAULT_KEY_FORMAT) or "KAFKA"
        key = inherited(default, given.format_properties("KEY", default, avro_key_of=statement.name), key)
    wrap = value_wrapping(
        value,
        len(schema.value),
        given.flag("WRAP_SINGLE_VALUE"),
        catalog.property(WRAP_SINGLE_VALUES),
    )
    return Formats(key, value, wrap_value=wrap)


def _sink_project(plan: Planned) -> Project:
    keys = tuple(
        Column(each.name, column.type)
        for each, column in zip(plan.result.keys, plan.flow.node.schema.key, strict=True)
    )
    types = _types_of(plan)
    values = tuple(Column(each.name, type_) for each, type_ in zip(plan.result.values, types, strict=True))
    items = tuple(each.expression for each in plan.result.values)
    return _project(plan.flow.node, "Project", Schema(keys, values), items)


def _types_of(plan: Planned) -> list[SqlType]:
    """Of the values that are selected; they have been checked before."""
    schema = plan.flow.node.schema

    def known(name: str) -> SqlType | None:
        return schema.type_of(name) or PSEUDO_COLUMNS.get(name) or WINDOW_BOUNDS.get(name)

    found = []
    for each in plan.result.values:
        type_ = type_of(each.expression, known)
        assert type_ is not None
        found.append(type_)
    return found


def _project(node: Node, name: str, schema: Schema, items: tuple[Expression, ...]) -> Project:
    return Project(name=name, schema=schema, kind=node.kind, window=node.window, input=node, items=items)


def _write(node: Node, sink: Source) -> Write:
    return Write(
        name=sink.name,
        schema=node.schema,
        kind=node.kind,
        window=node.window,
        input=node,
        topic=sink.topic,
        formats=sink.formats,
        timestamp=sink.timestamp,
    )


def _reads(plan: Planned) -> tuple[str, ...]:
    return tuple(each.source.name for each in plan.scope.sources)


# ------------------------------------------------------------------------------------------------ INSERT INTO


def _plan_insert(statement: InsertInto, catalog: Catalog, query_id: str) -> PlannedQuery:
    given = read_with(statement.properties, OF_INSERT)
    sink = _insert_target(statement, catalog)
    if statement.query.limit is not None:
        raise unprepared("INSERT INTO statements don't support LIMIT clause.")
    columns = (*sink.schema.key, *sink.schema.value)

    def cast_to(at: int, expression: Expression) -> Expression:
        wanted = columns[at].type if at < len(columns) else None
        return (
            _as_decimal(expression, wanted)
            if wanted is not None and wanted.kind is Kind.DECIMAL
            else expression
        )

    plan = planned(statement.query, catalog, sink=sink.name, cast_to=cast_to)
    project = _sink_project(plan)
    if project.kind is not sink.kind:
        raise StatementRefused(
            f"Incompatible data sink and query result. Data sink ({sink.name}) type is K{sink.kind} but select query result "
            f"is K{project.kind}."
        )
    _check_insert(project.schema, sink.schema)
    if _shape(project.window) != _shape(sink.window):
        raise StatementRefused("Into can't change windowing")
    items = tuple(
        item if have.type == want.type else Cast(item, want.type)
        for item, have, want in zip(project.items, project.schema.value, sink.schema.value, strict=True)
    )
    node: Node = replace(project, schema=replace(sink.schema, headers=()), items=items)
    return PlannedQuery(
        query_id=given.text("QUERY_ID") or query_id,
        plan=with_functions(Plan((_write(node, sink),), function_settings(catalog))),
        sink=sink,
        reads=_reads(plan),
        is_insert=True,
    )


def _shape(window: Window | None) -> tuple[str, int] | None:
    return None if window is None else (window.kind, 0 if window.kind == "SESSION" else window.size_ms)


def _insert_target(statement: InsertInto, catalog: Catalog) -> Source:
    sink = catalog.source(statement.name)
    if sink is None:
        place = statement.place
        told = None if place is None else place._replace(column=place.column + len("INSERT INTO") + 1)
        hint = alternatives(statement.name, catalog)
        raise unprepared(f"{prefix_of(told)}Source `{statement.name}` does not exist.{hint}", told)
    if sink.kind is not SourceKind.STREAM:
        raise unprepared(f"INSERT INTO can only be used to insert into a stream. {sink.name} is a table.")
    if sink.schema.headers:
        raise unprepared(f"Cannot insert into {sink.name} because it has header columns")
    if sink.is_read_only:
        raise StatementRefused(f"Cannot insert into read-only stream: {sink.name}")
    return sink


def _as_decimal(expression: Expression, wanted: SqlType) -> Expression:
    if not isinstance(expression, Literal) or expression.type is None:
        return expression
    try:
        return converted(expression, expression.type, wanted)
    except TypeRefused:
        return expression


def _check_insert(result: Schema, sink: Schema) -> None:
    """Names and order are the same; types may become wider."""
    same = len(result.key) == len(sink.key) and len(result.value) == len(sink.value)
    pairs = zip((*result.key, *result.value), (*sink.key, *sink.value), strict=False)
    if not same or any(have.name != want.name or not _fits(have.type, want.type) for have, want in pairs):
        raise StatementRefused(
            f"Incompatible schema between results and sink.\nResult schema is {result}\nSink schema is {sink}"
        )


def _fits(have: SqlType, want: SqlType) -> bool:
    return have == want or coercion.wider(have, want) == want
