"""What each statement of `/ksql` does and is answered with.

A statement that changes something becomes a command (`Engine.record`); what it needs first, topics and checks, is done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod
from types import MappingProxyType
from typing import Any, Final

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.model.errors import ErrorCode
from penstock.schemas.model import InvalidSchema
from penstock.sql.analysis.creating import NewTopic, create_source, topic_of
from penstock.sql.analysis.dropping import dropped
from penstock.sql.analysis.inference import remembered
from penstock.sql.analysis.inserting import insert_values
from penstock.sql.analysis.planned import PlannedQuery
from penstock.sql.analysis.queries import check_sink_topic, plan_query
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import altered
from penstock.sql.analysis.types import resolved_type
from penstock.sql.engine import describing, inserting
from penstock.sql.engine.applying import CREATE, DROP, EXECUTE, KIND_WORDS, PAUSE, RESUME, TERMINATE
from penstock.sql.engine.asserting import assert_schema, assert_topic
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import Entity, current_status, entity
from penstock.sql.engine.options import PROHIBITED, STATEMENT_PROPERTIES, STREAMS
from penstock.sql.engine.refusals import (
    BAD_REQUEST,
    BAD_STATEMENT,
    FORBIDDEN_KAFKA,
    SERVER_ERROR,
    WRONG_ENDPOINT,
    SqlRefused,
)
from penstock.sql.engine.registering import register
from penstock.sql.engine.world import World
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.sql.parsing.variables import parse_with
from penstock.streams.formats.failures import BadRecord
from penstock.streams.plan.sources import Source, SourceKind

CHANGING: Final = (
    st.CreateSource, st.CreateAsSelect, st.InsertInto, st.InsertValues, st.Drop, st.Terminate, st.Pause, st.Resume,
    st.CreateType, st.DropType, st.AlterSource, st.AlterSystem,
)  # fmt: skip


@dataclass
class Session:
    """Of one request: the statements' properties and variables, which SET and DEFINE change for those behind."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


def session(properties: Mapping[str, Any], variables: Mapping[str, Any]) -> Session:
    """SqlRefused for a property that nobody may set."""
    texts = {name: _text(value) for name, value in properties.items()}
    for name in texts:
        check_property(name)
    return Session(texts, {name: _text(value) for name, value in variables.items()})


def check_property(name: str) -> None:
    bare = name.removeprefix(STREAMS)
    if name in PROHIBITED or bare in PROHIBITED:
        raise SqlRefused(
            "One or more properties overrides set locally are prohibited by the KSQL server "
            f"(use UNSET to reset their default value): [{name}]",
            code=BAD_REQUEST,
        )
    if bare not in STATEMENT_PROPERTIES and not bare.startswith(
        ("ksql.", "consumer.", "producer.", "topic.")
    ):
        raise SqlRefused(f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'",
        code=BAD_REQUEST)  # fmt: skip


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Execution:
    """One request to `/ksql`."""

    def __init__(self, engine: Engine, session: Session, *, is_file: bool = False) -> None:
        """`is_file`: the statements of the server's own file, which is all that a server with one takes."""
        self.engine = engine
        self.session = session
        self._is_file = is_file
        self.entities: list[Entity] = []

    def run(self, text: str) -> list[Entity]:
        """SqlRefused, with what was done before."""
        for statement in self._statements(text):
            try:
                if isinstance(statement, CHANGING) and not self._is_file:
                    self.engine.check_takes_changes(
                        statement.text
                    )  # before anything is made or deleted for it
                found = self._execute(statement)
            except SqlRefused as error:
                error.entities = error.entities or self.entities
                raise
            except Exception as error:
                raise refusal_of(error, statement.text, self.entities) from error
            if found is not None:
                self.entities.append(found)
        return self.entities

    def _statements(self, text: str) -> list[st.Statement]:
        try:
            return parse_with(text, self.session.variables)
        except SyntaxRefused as error:
            raise SqlRefused(str(error), statement=text) from None

    def world(self) -> World:
        return self.engine.world(self.session.properties)

    # ------------------------------------------------------------------ one method for each kind of statement

    @singledispatchmethod
    def _execute(self, statement: st.Statement) -> Entity | None:
        raise SqlRefused(
            f"This server does not run statements of this kind: {statement.text}", statement=statement.text
        )

    @_execute.register(st.Select)
    @_execute.register(st.Print)
    def _(self, statement: st.Select | st.Print) -> Entity | None:
        kind = "SELECT" if isinstance(statement, st.Select) else "PRINT"
        raise SqlRefused(
            "The following statement types should be issued to the websocket endpoint '/query':"
            f"\n\t* PRINT\n\t* SELECT\nThis one is {kind}.",
            code=WRONG_ENDPOINT,
            statement=statement.text,
        )

    @_execute.register
    def _(self, statement: st.CreateSource) -> Entity | None:
        with self.engine.changing:
            world = self.world()
            name = f"{KIND_WORDS[statement.kind]}/{statement.name}/{CREATE}"
            if statement.if_not_exists and statement.name in self.engine.state.sources:
                return self._nothing_done(statement, name)
            topic = topic_of(statement, world)
            source = create_source(statement, world)
            inferred = remembered(statement, source, world)
            if topic is not None:
                self._make_topic(topic)
            register(self.engine.schemas, source, if_there_is_none=True)
            query_id = None
            if statement.is_source and statement.kind is SourceKind.TABLE:
                query_id = f"CST_{statement.name}_{self.engine.next_query_number()}"
            return self._command(statement, name, query_id=query_id, inferred=inferred)

    @_execute.register(st.CreateAsSelect)
    @_execute.register(st.InsertInto)
    def _(self, statement: st.CreateAsSelect | st.InsertInto) -> Entity | None:
        is_insert = isinstance(statement, st.InsertInto)
        with self.engine.changing:
            state = self.engine.state
            kind = (
                state.sources[statement.name].kind
                if is_insert and statement.name in state.sources
                else getattr(statement, "kind", SourceKind.STREAM)
            )
            action = EXECUTE if is_insert else CREATE
            name = f"{KIND_WORDS[kind]}/{statement.name}/{action}"
            if getattr(statement, "if_not_exists", False) and statement.name in state.sources:
                return self._nothing_done(statement, name)
            number = self.engine.next_query_number()
            prefix = "INSERTQUERY" if is_insert else "CSAS" if kind is SourceKind.STREAM else "CTAS"
            named = dict(statement.properties).get("QUERY_ID")
            if named is not None:
                query_id = str(named).upper()
                if query_id in state.queries:
                    raise StatementRefused(f"Query ID '{query_id}' already exists.")
            elif getattr(statement, "or_replace", False) and (old := state.query_of_source(statement.name)):
                query_id = old.id  # its state is found again by this name
            else:
                query_id = f"{prefix}_{number}" if is_insert else f"{prefix}_{statement.name}_{number}"
            planned = plan_query(statement, self.world(), query_id)
            inferred: dict[str, str] = {}
            if isinstance(statement, st.CreateAsSelect):
                inferred = remembered(statement, planned.sink, self.world())
                check_sink_topic(statement, planned, self.world())
                self._make_sink(planned)
                register(self.engine.schemas, planned.sink, if_there_is_none=False)
            return self._command(statement, name, query_id=query_id, inferred=inferred)

    @_execute.register
    def _(self, statement: st.InsertValues) -> Entity | None:
        world = self.world()
        row = insert_values(statement, world)
        inserting.insert(self.engine, row)
        return None

    @_execute.register
    def _(self, statement: st.Drop) -> Entity | None:
        with self.engine.changing:
            name = f"{KIND_WORDS[statement.kind]}/{statement.name}/{DROP}"
            source = dropped(statement, self.world())
            if source is not None:
                self._check_drop(source)
            if source is not None and statement.delete_topic:
                self._delete_topic(source)
            return self._command(statement, name)

    def _check_drop(self, source: Source) -> None:
        state = self.engine.state
        readers = state.readers_of(source.name)
        writers = [query_id for query_id in state.writers_of(source.name) if query_id != source.query_id]
        if readers or writers:
            raise StatementRefused(
                f"Cannot drop {source.name}.\n"
                f"The following queries read from this source: [{', '.join(sorted(readers))}].\n"
                f"The following queries write into this source: [{', '.join(sorted(writers))}].\n"
                f"You need to terminate them before dropping {source.name}."
            )

    @_execute.register(st.Terminate)
    @_execute.register(st.Pause)
    @_execute.register(st.Resume)
    def _(self, statement: st.Terminate | st.Pause | st.Resume) -> Entity | None:
        action = {st.Terminate: TERMINATE, st.Pause: PAUSE, st.Resume: RESUME}[type(statement)]
        with self.engine.changing:
            wanted = statement.query_id
            if wanted is not None and wanted not in self.engine.state.queries:
                raise StatementRefused(f"Unknown queryId: {wanted}")
            return self._command(statement, f"{action}/{wanted or 'ALL'}/execute", query_id=None)

    @_execute.register(st.CreateType)
    @_execute.register(st.DropType)
    def _(self, statement: st.CreateType | st.DropType) -> Entity | None:
        with self.engine.changing:
            is_there = statement.name in self.engine.state.types
            if isinstance(statement, st.CreateType):
                name = f"type/{statement.name}/{CREATE}"
                if is_there and statement.if_not_exists:
                    return self._nothing_done(statement, name)
                if is_there:
                    raise StatementRefused(
                        f"Cannot register custom type '{statement.name}' since it is already registered with type: "
                        f"{self.engine.state.types[statement.name]}"
                    )
                resolved_type(statement.type, self.world())
                return self._command(statement, name)
            if not is_there and not statement.if_exists:
                raise StatementRefused(f"Type {statement.name} does not exist.")
            return self._command(statement, f"type/{statement.name}/{DROP}")

    @_execute.register
    def _(self, statement: st.AlterSource) -> Entity | None:
        with self.engine.changing:
            altered(statement, self.world())
            return self._command(statement, f"{KIND_WORDS[statement.kind]}/{statement.name}/alter")

    @_execute.register
    def _(self, statement: st.AlterSystem) -> Entity | None:
        check_property(statement.name)
        with self.engine.changing:
            return self._command(statement, f"system/{statement.name}/alter")

    @_execute.register
    def _(self, statement: st.SetProperty) -> Entity | None:
        check_property(statement.name)
        self.session.properties[statement.name] = statement.value
        return None

    @_execute.register
    def _(self, statement: st.UnsetProperty) -> Entity | None:
        self.session.properties.pop(statement.name, None)
        return None

    @_execute.register
    def _(self, statement: st.Define) -> Entity | None:
        self.session.variables[statement.name] = statement.value
        return None

    @_execute.register
    def _(self, statement: st.Undefine) -> Entity | None:
        self.session.variables.pop(statement.name, None)
        return None

    @_execute.register
    def _(self, statement: st.ShowVariables) -> Entity | None:
        found = [{"name": name, "value": value} for name, value in sorted(self.session.variables.items())]
        return entity("variables", statement.text, variables=found)

    @_execute.register
    def _(self, statement: st.AssertTopic) -> Entity | None:
        return assert_topic(statement, self.engine)

    @_execute.register
    def _(self, statement: st.AssertSchema) -> Entity | None:
        return assert_schema(statement, self.engine)

    @_execute.register(st.ShowTopics)
    @_execute.register(st.ShowStreams)
    @_execute.register(st.ShowTables)
    @_execute.register(st.ShowQueries)
    @_execute.register(st.ShowProperties)
    @_execute.register(st.ShowFunctions)
    @_execute.register(st.ShowTypes)
    @_execute.register(st.Describe)
    @_execute.register(st.DescribeStreams)
    @_execute.register(st.DescribeTables)
    @_execute.register(st.DescribeFunction)
    @_execute.register(st.Explain)
    def _(self, statement: st.Statement) -> Entity | None:
        return describing.describe(statement, self.engine, self.world(), self.session.properties)

    # ------------------------------------------------------------------ what they share

    def _command(
        self,
        statement: st.Statement,
        name: str,
        *,
        query_id: str | None = None,
        inferred: Mapping[str, str] = MappingProxyType({}),
    ) -> Entity:
        """`inferred` is what the schema registry said of columns that the statement does not name."""
        message, sequence = self.engine.record(
            name, statement.text, query_id=query_id, properties={**self.session.properties, **inferred}
        )
        return current_status(statement.text, name, message, query_id=query_id, sequence=sequence)

    def _nothing_done(self, statement: st.Statement, name: str) -> Entity:
        what, entity_name, _ = name.split("/", 2)
        message = f"Cannot add {what} {entity_name}: A {what} with the same name already exists."
        return entity("warning_entity", statement.text, message=message)

    def _make_sink(self, planned: PlannedQuery) -> None:
        if planned.sink_partitions is not None:
            self._make_topic(
                NewTopic(
                    planned.sink.topic, planned.sink_partitions, planned.sink_replicas, planned.sink_configs
                )
            )

    def _make_topic(self, topic: NewTopic) -> None:
        self.engine.cluster.topics.create(
            topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replicas,
            configs=dict(topic.configs),
            exist_ok=True,
        )

    def _delete_topic(self, source: Source) -> None:
        try:
            self.engine.cluster.topics.delete(source.topic)
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise


def refusal_of(error: Exception, statement: str, entities: list[Entity] | None = None) -> SqlRefused:
    """The answer to what went wrong with a statement."""
    done = entities or []
    if isinstance(error, SqlRefused):
        return error
    if isinstance(error, StatementRefused | SyntaxRefused | BadRecord | InvalidSchema):
        return SqlRefused(str(error), statement=statement, entities=done)
    if isinstance(error, Refused):
        forbidden = error.code in _FORBIDDEN
        return SqlRefused(
            str(error),
            code=FORBIDDEN_KAFKA if forbidden else BAD_STATEMENT,
            statement=statement,
            entities=done,
        )
    if isinstance(error, Unreachable):
        return SqlRefused(str(error), code=SERVER_ERROR, statement=statement, entities=done)
    if isinstance(error, UserError):
        return SqlRefused(str(error), statement=statement, entities=done)
    raise error


_FORBIDDEN: Final = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))
