"""What analysis asks about the world: which sources, types and topics there are. The engine answers; tests have answers
of their own."""

from __future__ import annotations

from typing import Protocol

from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.plan.sources import Source
from penstock.streams.plan.types import SqlType


class Catalog(Protocol):
    def source(self, name: str) -> Source | None: ...

    def source_names(self) -> tuple[str, ...]:
        """All of them, for what is said of a name that is not there."""

    def type(self, name: str) -> SqlType | None:
        """Of CREATE TYPE."""

    def type_names(self) -> tuple[str, ...]: ...

    def topic_partitions(self, topic: str) -> int | None:
        """None: there is no such topic."""

    def topic_replicas(self, topic: str) -> int | None: ...

    def property(self, name: str) -> str | None:
        """What SET, the request or the server's file says: `ksql.persistence.default.format.value` and the like."""

    def readers_of(self, name: str) -> tuple[str, ...]:
        """The ids of queries that read this source."""

    def query_statement(self, query_id: str) -> str | None: ...

    def schemas(self) -> SchemaLookup | None:
        """The schema registry; None where there is none."""
