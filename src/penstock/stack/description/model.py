"""What a file says, as plain data. Lines are kept where something may be told of it later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from penstock.schemas.model import SchemaReference
from penstock.stack.composition import Wish


class TopicWish(NamedTuple):
    name: str
    partitions: int | None = None
    """None: what the brokers take for it."""
    replication: int | None = None
    configs: Mapping[str, str] = MappingProxyType({})
    line: int = 0


class SchemaWish(NamedTuple):
    subject: str
    kind: str
    text: str
    path: Path
    references: tuple[SchemaReference, ...] = ()
    compatibility: str | None = None
    line: int = 0


class ConnectorWish(NamedTuple):
    name: str
    config: Mapping[str, str]
    line: int = 0


class ScriptWish(NamedTuple):
    """Statements for the SQL server."""

    path: Path
    text: str
    line: int = 0


class Contents(NamedTuple):
    """What shall be in a stack, or in any cluster with services."""

    topics: tuple[TopicWish, ...] = ()
    schemas: tuple[SchemaWish, ...] = ()
    connectors: tuple[ConnectorWish, ...] = ()
    script: ScriptWish | None = None

    @property
    def is_empty(self) -> bool:
        return self == Contents()


class Description(NamedTuple):
    path: Path
    name: str
    data: Path
    """Where the stack is kept."""
    wish: Wish
    contents: Contents
