"""What a text can say: one class for each form of statement, as plain data.

Names are as the engine takes them (upper case unless quoted). Expressions hold names as they stand; types may be `NamedType`,
which analysis looks up among the types of CREATE TYPE. Places count lines and columns of the whole text, from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from penstock.streams.plan.expressions import Expression, Place
from penstock.streams.plan.nodes import JoinKind
from penstock.streams.plan.sources import SourceKind, WindowKind
from penstock.streams.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class NamedType(SqlType):
    """A type of CREATE TYPE by its name; its `kind` says nothing."""

    name: str = ""

    def __str__(self) -> str:
        return f"`{self.name}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`text` is the statement's own text, `;` at its end included."""

    text: str = field(default="", compare=False)
    place: Place | None = field(default=None, compare=False)


Properties = tuple[tuple[str, Any], ...]
"""WITH (…): name in upper case → str, int, Decimal, float, bool or None, in the order of the text."""


class ColumnRole(StrEnum):
    VALUE = "VALUE"
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """`header` is the key of HEADER('key'); None with role HEADERS stands for all headers."""

    name: str
    type: SqlType
    role: ColumnRole = ColumnRole.VALUE
    header: str | None = None
    place: Place | None = field(default=None, compare=False)


# ------------------------------------------------------------------------------------------------ queries


class Emit(StrEnum):
    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class SelectExpression:
    expression: Expression
    alias: str | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SelectAll:
    """`*`, or `source.*`."""

    source: str | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SelectFields:
    """`struct->*`."""

    base: Expression
    place: Place | None = field(default=None, compare=False)


SelectItem = SelectExpression | SelectAll | SelectFields


@dataclass(frozen=True, slots=True)
class FromSource:
    """`alias` is the source's own name where the text has none. `query`: a SELECT stands in the source's place."""

    name: str
    alias: str
    place: Place | None = field(default=None, compare=False)
    query: Select | None = None


@dataclass(frozen=True, slots=True)
class OrderItem:
    """`nulls_first` None: the text does not say."""

    expression: Expression
    is_descending: bool = False
    nulls_first: bool | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Within:
    before_ms: int
    after_ms: int
    grace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Join:
    kind: JoinKind
    source: FromSource
    on: Expression
    within: Within | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WindowClause:
    kind: WindowKind
    size_ms: int  # of a session: the gap
    advance_ms: int = 0
    retention_ms: int | None = None
    grace_ms: int | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Statement):
    """`group_by` and `partition_by` are None where there is no such clause, and empty where it is `()`."""

    items: tuple[SelectItem, ...]
    source: FromSource
    joins: tuple[Join, ...] = ()
    window: WindowClause | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    order_by: tuple[OrderItem, ...] = ()
    is_distinct: bool = False
    emit: Emit | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Print(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


# ------------------------------------------------------------------------------------------------ sources and queries that run


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(Statement):
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name (columns) WITH (properties)."""

    name: str
    kind: SourceKind
    columns: tuple[ColumnDeclaration, ...] = ()
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAsSelect(Statement):
    name: str
    kind: SourceKind
    query: Select
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto(Statement):
    name: str
    query: Select
    properties: Properties = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Statement):
    """`columns` is empty where the text names none."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Statement):
    name: str
    kind: SourceKind
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource(Statement):
    name: str
    kind: SourceKind
    columns: tuple[tuple[str, SqlType], ...]


# ------------------------------------------------------------------------------------------------ queries by their id


@dataclass(frozen=True, slots=True, kw_only=True)
class OfQuery(Statement):
    """`query_id` None: ALL."""

    query_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate(OfQuery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(OfQuery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(OfQuery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Statement):
    """One of both is None."""

    statement: Statement | None = None
    query_id: str | None = None


# ------------------------------------------------------------------------------------------------ what is there


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTopics(Statement):
    all: bool = False
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStreams(Statement):
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables(Statement):
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowQueries(Statement):
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowProperties(Statement):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowFunctions(Statement):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTypes(Statement):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowVariables(Statement):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowConnectors(Statement):
    """`kind` is SOURCE, SINK, or None for both."""

    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowConnectorPlugins(Statement):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Statement):
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeStreams(Statement):
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTables(Statement):
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFunction(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConnector(Statement):
    name: str


# ------------------------------------------------------------------------------------------------ properties and variables


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSystem(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Define(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undefine(Statement):
    name: str


# ------------------------------------------------------------------------------------------------ types, functions, connectors


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Statement):
    """`kind` is SCALAR, AGGREGATE or TABLE; `source` is the program between the two `$$`."""

    name: str
    kind: str
    parameters: tuple[tuple[str, SqlType], ...]
    returns: SqlType
    language: str
    source: str
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnector(Statement):
    """`kind` is SOURCE or SINK. Names of properties stand as in the text."""

    name: str
    kind: str
    properties: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConnector(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic(Statement):
    topic: str
    properties: Properties = ()
    timeout_ms: int | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema(Statement):
    subject: str | None = None
    id: int | None = None
    timeout_ms: int | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript(Statement):
    path: str
