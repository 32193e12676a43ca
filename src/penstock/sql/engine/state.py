"""What the commands have made of the server: sources, types, and the queries that are to run. Changed by `applying` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from penstock.sql.analysis.planned import PlannedQuery
from penstock.sql.functions.definition import Definition
from penstock.streams.plan.sources import Source
from penstock.streams.plan.types import SqlType


class QueryState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"


class QueryError(NamedTuple):
    message: str
    time_ms: int = 0


@dataclass(slots=True)
class PersistentQuery:
    """`plan` None: the command could not be applied, `error` says why. Then it is shown, and can be ended."""

    id: str
    statement: str
    planned: PlannedQuery | None
    properties: dict[str, str] = field(default_factory=dict)
    """What came with the statement."""
    sink: str = ""
    sink_topic: str = ""
    reads: tuple[str, ...] = ()
    is_insert: bool = False
    is_paused: bool = False
    error: str | None = None
    system: Mapping[str, str] = field(default_factory=dict)
    """The state's own `properties`, as they are now: what ALTER SYSTEM says holds for queries that are there, too."""


@dataclass(slots=True)
class State:
    sources: dict[str, Source] = field(default_factory=dict)
    types: dict[str, SqlType] = field(default_factory=dict)
    queries: dict[str, PersistentQuery] = field(default_factory=dict)
    functions: dict[str, Definition] = field(default_factory=dict)
    """By CREATE FUNCTION."""
    properties: dict[str, str] = field(default_factory=dict)
    """By ALTER SYSTEM."""

    def readers_of(self, name: str) -> list[str]:
        return [query.id for query in self.queries.values() if name in query.reads]

    def writers_of(self, name: str) -> list[str]:
        return [query.id for query in self.queries.values() if query.sink == name]

    def query_of_source(self, name: str) -> PersistentQuery | None:
        source = self.sources.get(name)
        return None if source is None or source.query_id is None else self.queries.get(source.query_id)
