"""A world for analysis: statements are carried out in memory, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.sql.analysis.creating import create_source
from penstock.sql.analysis.planned import PlannedPush, PlannedQuery
from penstock.sql.analysis.queries import plan_push, plan_query
from penstock.sql.analysis.types import resolved_type
from penstock.sql.parsing import statements as s
from penstock.sql.parsing.parser import parse
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.plan.sources import Source
from penstock.streams.plan.types import SqlType


@dataclass
class World:
    sources: dict[str, Source] = field(default_factory=dict)
    types: dict[str, SqlType] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    lookup: SchemaLookup | None = None
    queries: dict[str, str] = field(default_factory=dict)

    def source(self, name: str) -> Source | None:
        return self.sources.get(name)

    def source_names(self) -> tuple[str, ...]:
        return tuple(self.sources)

    def type(self, name: str) -> SqlType | None:
        return self.types.get(name)

    def type_names(self) -> tuple[str, ...]:
        return tuple(self.types)

    def topic_partitions(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def topic_replicas(self, topic: str) -> int | None:
        return 1 if topic in self.topics else None

    def property(self, name: str) -> str | None:
        return self.properties.get(name)

    def readers_of(self, name: str) -> tuple[str, ...]:
        return ()

    def query_statement(self, query_id: str) -> str | None:
        return self.queries.get(query_id)

    def schemas(self) -> SchemaLookup | None:
        return self.lookup

    def run(self, text: str) -> PlannedQuery | Source | PlannedPush | None:
        """The last statement's outcome."""
        outcome: PlannedQuery | Source | PlannedPush | None = None
        for number, statement in enumerate(parse(text)):
            outcome = self._run(statement, number)
        return outcome

    def _run(self, statement: s.Statement, number: int) -> PlannedQuery | Source | PlannedPush | None:
        match statement:
            case s.CreateSource(name=name, properties=properties):
                topic = dict(properties).get("KAFKA_TOPIC", name)
                self.topics.setdefault(topic, dict(properties).get("PARTITIONS", 4))
                self.sources[name] = create_source(statement, self)
                return self.sources[name]
            case s.CreateAsSelect() | s.InsertInto():
                planned = plan_query(statement, self, f"Q_{number}")
                self.queries[planned.query_id] = statement.text
                if not planned.is_insert:
                    self.sources[statement.name] = planned.sink
                return planned
            case s.CreateType(name=name, type=type_):
                self.types[name] = resolved_type(type_, self)
            case s.Select():
                return plan_push(statement, self, f"push_{number}")
        return None

    def query(self, text: str) -> PlannedQuery:
        outcome = self.run(text)
        assert isinstance(outcome, PlannedQuery)
        return outcome
