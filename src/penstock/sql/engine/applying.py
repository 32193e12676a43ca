"""A command changes the state: the same at the server that took it, at those that stand by, and at each new start."""

from __future__ import annotations

import logging
from functools import singledispatch
from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.creating import create_source
from penstock.sql.analysis.legacy import with_old_key
from penstock.sql.analysis.queries import plan_query
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import altered
from penstock.sql.analysis.types import resolved_type
from penstock.sql.engine.adding import created
from penstock.sql.engine.command_log import Command
from penstock.sql.engine.options import of_streams
from penstock.sql.engine.state import PersistentQuery, State
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import parse
from penstock.streams.functions.scope import in_scope
from penstock.streams.plan.sources import SourceKind

log = logging.getLogger("penstock.sql")

CREATE, DROP, TERMINATE, PAUSE, RESUME, EXECUTE = "create", "drop", "terminate", "pause", "resume", "execute"
RESET: Final = "auto.offset.reset"
KIND_WORDS: Final = {SourceKind.STREAM: "stream", SourceKind.TABLE: "table"}


class Change:
    """What is to be started and stopped because of a command."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.replaced: list[str] = []
        self.message = ""


def apply(command: Command, state: State, catalog: Catalog) -> Change:
    """Raises what analysis raises; then nothing has changed."""
    change = Change()
    (statement,) = parse(command.statement)
    with in_scope(state.functions.values()):
        _apply(statement, command, state, catalog, change)
    return change


def failed(command: Command, state: State, why: str) -> None:
    """A command that cannot be applied, of an older or a newer server perhaps, costs only itself: a query that an earlier
    command has made under the same id goes on."""
    log.error("The command at offset %d is left out: %s: %s", command.offset, command.statement, why)
    if command.query_id is not None and command.query_id not in state.queries:
        state.queries[command.query_id] = PersistentQuery(
            command.query_id, command.statement, None, dict(command.properties), error=why
        )


@singledispatch
def _apply(statement: st.Statement, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    raise ValueError(f"not a command: {type(statement).__name__}")


@_apply.register
def _(s: st.CreateSource, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    source = create_source(with_old_key(s, catalog), catalog)
    if s.name in state.sources and s.if_not_exists:
        change.message = f"Cannot add {KIND_WORDS[s.kind]} {s.name}: a source with the same name exists."
        return
    state.sources[s.name] = source
    change.message = f"{KIND_WORDS[s.kind].capitalize()} created"


@_apply.register
def _(s: st.CreateAsSelect, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    _add_query(s, command, state, catalog, change, is_insert=False)


@_apply.register
def _(s: st.InsertInto, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    _add_query(s, command, state, catalog, change, is_insert=True)


def _add_query(
    s: st.CreateAsSelect | st.InsertInto,
    command: Command,
    state: State,
    catalog: Catalog,
    change: Change,
    *,
    is_insert: bool,
) -> None:
    query_id = command.query_id or ""
    planned = plan_query(s, catalog, query_id)
    sink = planned.sink
    old = None if is_insert else state.query_of_source(sink.name)
    other = state.queries.get(query_id)
    if other is not None and other is not old and other.error is None:
        # Two servers of one service have chosen it at one time. The log says who was first.
        raise StatementRefused(f"Query ID '{query_id}' already exists.")
    if old is not None:
        del state.queries[old.id]
        change.replaced.append(old.id)
    if not is_insert:
        state.sources[sink.name] = sink
    state.queries[query_id] = PersistentQuery(
        query_id, command.statement, planned, dict(command.properties), sink.name, sink.topic, planned.reads, is_insert,
        system=state.properties,
    )  # fmt: skip
    change.started.append(query_id)
    change.message = f"Created query with ID {query_id}"


@_apply.register
def _(s: st.Drop, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    source = state.sources.get(s.name)
    if source is None:
        change.message = f"Source {s.name} does not exist."
        return
    own = state.query_of_source(s.name)
    del state.sources[s.name]
    if own is not None:
        del state.queries[own.id]
        change.stopped.append(own.id)
    change.message = f"Source {s.name} (topic: {source.topic}) was dropped."


@_apply.register
def _(s: st.Terminate, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    wanted = list(state.queries) if s.query_id is None else [s.query_id]
    for query_id in wanted:
        if state.queries.pop(query_id, None) is not None:
            change.stopped.append(query_id)
    change.message = "Query terminated."


@_apply.register
def _(s: st.Pause, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    for query in _queries(state, s.query_id):
        query.is_paused = True
    change.message = "Query paused."


@_apply.register
def _(s: st.Resume, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    for query in _queries(state, s.query_id):
        query.is_paused = False
    change.message = "Query resumed."


def _queries(state: State, query_id: str | None) -> list[PersistentQuery]:
    return [query for query in state.queries.values() if query_id in (None, query.id)]


@_apply.register
def _(s: st.CreateType, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    type_ = resolved_type(s.type, catalog)
    state.types[s.name] = type_
    change.message = f"Registered custom type with name '{s.name}' and SQL type {type_}"


@_apply.register
def _(s: st.DropType, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    found = state.types.pop(s.name, None)
    change.message = f"Dropped type '{s.name}'" if found is not None else f"Type '{s.name}' does not exist"


@_apply.register
def _(s: st.CreateFunction, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    state.functions[s.name] = created(s, catalog)
    change.message = f"Function {s.name} created"


@_apply.register
def _(s: st.DropFunction, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    found = state.functions.pop(s.name, None)
    change.message = f"Dropped function '{s.name}'" if found else f"Function '{s.name}' does not exist"


@_apply.register
def _(s: st.AlterSource, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    source = altered(s, catalog)
    state.sources[s.name] = source
    change.message = f"{KIND_WORDS[s.kind].capitalize()} altered"


@_apply.register
def _(s: st.AlterSystem, command: Command, state: State, catalog: Catalog, change: Change) -> None:
    """Queries that it is about begin anew from where they had committed. Where they begin at first is no matter for them."""
    before = {
        query.id: of_streams(query.system) | of_streams(query.properties) for query in _queries(state, None)
    }
    state.properties[s.name] = s.value
    for query in _queries(state, None):
        now = of_streams(query.system) | of_streams(query.properties)
        if query.planned is not None and {**now, RESET: ""} != {**before[query.id], RESET: ""}:
            change.replaced.append(query.id)
            change.started.append(query.id)
    change.message = f"System property {s.name} was set to {s.value}."
