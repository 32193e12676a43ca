"""What analysis gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.streams.plan.nodes import Node, Plan
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Source


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """Of CREATE … AS SELECT and INSERT INTO … SELECT. `sink` is the source that the query makes or writes to."""

    query_id: str
    plan: Plan
    sink: Source
    reads: tuple[str, ...]
    """The names of the sources that it reads, in the order of the text."""
    sink_partitions: int | None = None
    """None: the topic is there already."""
    sink_replicas: int | None = None
    sink_configs: tuple[tuple[str, str], ...] = ()
    """Of a new topic: `cleanup.policy`, `retention.ms`."""
    is_insert: bool = False


@dataclass(frozen=True, slots=True)
class PlannedPush:
    """SELECT … EMIT CHANGES: the rows of `node` go to the client. `columns` are the statement's, in its order: (name, is a
    key column of `node.schema`, place in its key or value). A client gets them in this order, keys and values alike."""

    query_id: str
    node: Node
    columns: tuple[tuple[str, bool, int], ...]
    schema: Schema
    """As the header tells it: all columns are value columns."""
    reads: tuple[str, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class InsertedRow:
    """INSERT INTO … VALUES: one record for the source's topic. `timestamp` None: now."""

    source: Source
    key: tuple[Any, ...] | None
    value: tuple[Any, ...] | None
    timestamp: int | None = None
    window: tuple[int, int] | None = field(default=None)
