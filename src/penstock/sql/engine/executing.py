"""What each statement of `/ksql` does and is answered with.

A statement that changes something becomes a command (`Engine.record`); what it needs first, topics and checks, is done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatchmethod
from types import MappingProxyType
from typing import Final

from penstock.client.errors import Refused
from penstock.model.errors import ErrorCode
from penstock.sql.analysis.creating import NewTopic, create_source, topic_of
from penstock.sql.analysis.dropping import dropped
from penstock.sql.analysis.inference import remembered
from penstock.sql.analysis.inserting import insert_values
from penstock.sql.analysis.legacy import LEGACY, is_legacy, with_old_key
from penstock.sql.analysis.names import nearest
from penstock.sql.analysis.planned import PlannedQuery
from penstock.sql.analysis.queries import check_sink_topic, plan_query
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import altered
from penstock.sql.analysis.types import resolved_type
from penstock.sql.engine import describing, inserting
from penstock.sql.engine.adding import created
from penstock.sql.engine.applying import CREATE, DROP, EXECUTE, KIND_WORDS, PAUSE, RESUME, TERMINATE
from penstock.sql.engine.asserting import assert_schema, assert_topic
from penstock.sql.engine.callers import READ, WRITE
from penstock.sql.engine.connectors import about_connectors
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import Entity, current_status, entity
from penstock.sql.engine.options import of_streams
from penstock.sql.engine.refusals import (
    WRONG_ENDPOINT,
    SqlRefused,
)
from penstock.sql.engine.refusing import refusal_of
from penstock.sql.engine.registering import forget_schemas, register
from penstock.sql.engine.sessions import Session, check_property
from penstock.sql.engine.world import World
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.sql.parsing.variables import parse_with
from penstock.streams.functions.scope import in_scope
from penstock.streams.plan.sources import Source, SourceKind
from penstock.streams.running.options import run_options

CHANGING: Final = (
    st.CreateSource, st.CreateAsSelect, st.InsertInto, st.InsertValues, st.Drop, st.Terminate, st.Pause, st.Resume,
    st.CreateType, st.DropType, st.AlterSource, st.AlterSystem, st.CreateFunction, st.DropFunction,
    st.CreateConnector, st.DropConnector,
)  # fmt: skip


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
                with in_scope(self.engine.state.functions.values()):
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
            statement = with_old_key(statement, world)
            topic = topic_of(statement, world)
            source = create_source(statement, world)
            inferred = remembered(statement, source, world)
            if is_legacy(world):
                inferred = {**inferred, LEGACY: "true"}  # it means the same at every start
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
            self._check_topics_read(planned)
            inferred: dict[str, str] = {}
            if isinstance(statement, st.CreateAsSelect):
                inferred = remembered(statement, planned.sink, self.world())
                check_sink_topic(statement, planned, self.world())
                self._make_sink(planned)
                register(self.engine.schemas, planned.sink, if_there_is_none=False)
            self.engine.caller.check_allowed(planned.sink.topic, WRITE)
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
                self._check_other_sources(source)
                self._delete_topic(source)
                forget_schemas(self.engine.schemas, source)
            return self._command(statement, name)

    def _check_other_sources(self, source: Source) -> None:
        others = sorted(
            each.name
            for each in self.engine.state.sources.values()
            if each.topic == source.topic and each.name != source.name
        )
        if others:
            raise StatementRefused(
                f"Refusing to delete topic. Found other data sources ({', '.join(others)}) using topic {source.topic}"
            )

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
                raise StatementRefused(
                    f"Unknown queryId: {wanted}{nearest(wanted, self.engine.state.queries)}"
                )
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
                raise StatementRefused(
                    f"Type {statement.name} does not exist.{nearest(statement.name, self.engine.state.types)}"
                )
            return self._command(statement, f"type/{statement.name}/{DROP}")

    @_execute.register
    def _(self, statement: st.CreateFunction) -> Entity | None:
        with self.engine.changing:
            name = f"function/{statement.name}/{CREATE}"
            is_there = statement.name in self.engine.state.functions
            if is_there and statement.if_not_exists:
                return self._nothing_done(statement, name)
            definition = created(statement, self.world())
            if is_there and not statement.or_replace:
                raise StatementRefused(
                    f"A function with the name {statement.name} exists already. Replace it with CREATE OR REPLACE FUNCTION."
                )
            definition.check()
            return self._command(statement, name)

    @_execute.register
    def _(self, statement: st.DropFunction) -> Entity | None:
        with self.engine.changing:
            known = self.engine.state.functions
            if statement.name not in known and not statement.if_exists:
                raise StatementRefused(
                    f"Function {statement.name} does not exist.{nearest(statement.name, known)}"
                )
            return self._command(statement, f"function/{statement.name}/{DROP}")

    @_execute.register
    def _(self, statement: st.AlterSource) -> Entity | None:
        with self.engine.changing:
            altered(statement, self.world())
            return self._command(statement, f"{KIND_WORDS[statement.kind]}/{statement.name}/alter")

    @_execute.register
    def _(self, statement: st.AlterSystem) -> Entity | None:
        check_property(statement.name)
        run_options("checked", "", of_streams({statement.name: statement.value}))  # it would be every query's
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

    @_execute.register(st.CreateConnector)
    @_execute.register(st.DropConnector)
    @_execute.register(st.ShowConnectors)
    @_execute.register(st.ShowConnectorPlugins)
    @_execute.register(st.DescribeConnector)
    def _(self, statement: st.Statement) -> Entity | None:
        return about_connectors(statement, self.engine)

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

    def _check_topics_read(self, planned: PlannedQuery) -> None:
        """The query runs with the server's login: who starts it must be allowed to read what it reads."""
        for name in planned.reads:
            source = self.engine.state.sources.get(name)
            if source is not None:
                self.engine.caller.check_allowed(source.topic, READ)

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
