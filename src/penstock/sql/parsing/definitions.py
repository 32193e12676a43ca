"""Statements that make, fill, change and remove something: CREATE, INSERT, ALTER, DROP."""

from __future__ import annotations

from typing import Any, Final

from penstock.sql.parsing.expressions import number, value_expression
from penstock.sql.parsing.queries import select
from penstock.sql.parsing.reading import Reader
from penstock.sql.parsing.statements import (
    AlterSource,
    ColumnDeclaration,
    ColumnRole,
    CreateAsSelect,
    CreateConnector,
    CreateFunction,
    CreateSource,
    CreateType,
    Drop,
    DropConnector,
    DropFunction,
    DropType,
    InsertInto,
    InsertValues,
    Properties,
    Select,
    Statement,
)
from penstock.sql.parsing.tokens import TokenKind, unquoted
from penstock.sql.parsing.types import sql_type
from penstock.streams.plan.sources import SourceKind


def create(reader: Reader) -> Statement:
    reader.expect("CREATE")
    if reader.accept("TYPE"):
        if_not_exists = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name()
        reader.expect("AS")
        return CreateType(name=name, type=sql_type(reader), if_not_exists=if_not_exists)
    if (reader.is_next("SOURCE") or reader.is_next("SINK")) and reader.ahead().word == "CONNECTOR":
        return _create_connector(reader)
    or_replace = reader.accept("OR", "REPLACE")
    if reader.is_next("FUNCTION") or reader.ahead().word == "FUNCTION":
        return _create_function(reader, or_replace)
    is_source = reader.accept("SOURCE")
    kind = _source_kind(reader)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = _columns(reader) if reader.is_next("(") else ()
    properties = source_properties(reader)
    if not columns and not is_source and reader.accept("AS"):
        query = _query_of(reader, kind)
        return CreateAsSelect(
            name=name,
            kind=kind,
            query=query,
            properties=properties,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )
    return CreateSource(
        name=name,
        kind=kind,
        columns=columns,
        properties=properties,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        is_source=is_source,
    )


def _source_kind(reader: Reader) -> SourceKind:
    word = reader.accept_any("STREAM", "TABLE")
    if word is None:
        reader.refuse_here()
    return SourceKind(word)


def _query_of(reader: Reader, kind: SourceKind) -> Select:
    if not reader.is_next("SELECT"):
        reader.refuse("Syntax Error\nExpecting 'SELECT'")
    place = reader.token.place
    query = select(reader)
    if query.limit is not None:
        reader.refuse(f"CREATE {kind} AS SELECT statements don't support LIMIT clause.", place)
    return query


def _columns(reader: Reader) -> tuple[ColumnDeclaration, ...]:
    reader.expect("(")
    found = reader.listed(lambda: _column(reader))
    if not reader.accept(")"):
        reader.refuse("Syntax Error\nExpecting {',', ')'}")
    return found


def _column(reader: Reader) -> ColumnDeclaration:
    place = reader.token.place
    name = reader.name()
    column_type = sql_type(reader)
    role, header = ColumnRole.VALUE, None
    if reader.accept("PRIMARY", "KEY"):
        role = ColumnRole.PRIMARY_KEY
    elif reader.accept("KEY"):
        role = ColumnRole.KEY
    elif reader.accept("HEADERS"):
        role = ColumnRole.HEADERS
    elif reader.accept("HEADER", "("):
        role, header = ColumnRole.HEADERS, reader.string()
        reader.expect(")")
    return ColumnDeclaration(name, column_type, role, header, place)


def source_properties(reader: Reader) -> Properties:
    """WITH (…), if it stands here, with names in upper case."""
    if not reader.accept("WITH"):
        return ()
    found = _property_list(reader)
    upper = [(name.upper(), value) for name, value in found]
    seen: set[str] = set()
    for name, _ in upper:
        if name in seen:
            reader.refuse(f"Duplicate configuration name in the WITH clause: {name}")
        seen.add(name)
    return tuple(upper)


def _property_list(reader: Reader) -> Properties:
    reader.expect("(")
    found = reader.listed(lambda: _property(reader))
    reader.expect(")")
    return found


def _property(reader: Reader) -> tuple[str, Any]:
    name = reader.string() if reader.token.kind is TokenKind.STRING else reader.name()
    reader.expect("=")
    return name, literal_value(reader)


_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}


def literal_value(reader: Reader) -> Any:
    if reader.token.kind is TokenKind.STRING:
        return reader.string()
    word = reader.accept_any(*_CONSTANTS)
    return _CONSTANTS[word] if word else number(reader).value


def _create_connector(reader: Reader) -> Statement:
    kind = reader.take().word
    reader.expect("CONNECTOR")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("WITH")
    return CreateConnector(
        name=name, kind=kind, properties=_property_list(reader), if_not_exists=if_not_exists
    )


def _create_function(reader: Reader, or_replace: bool) -> Statement:
    kind = "SCALAR" if reader.is_next("FUNCTION") else reader.take().text.upper()
    if kind not in ("SCALAR", "AGGREGATE", "TABLE"):
        reader.refuse_here()
    reader.expect("FUNCTION")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("(")
    parameters = () if reader.is_next(")") else reader.listed(lambda: (reader.name(), sql_type(reader)))
    reader.expect(")", "RETURNS")
    returns = sql_type(reader)
    reader.expect("LANGUAGE")
    language = reader.name()
    reader.expect("AS")
    token = reader.token
    if token.kind is TokenKind.PROGRAM:
        source = reader.take().text[2:-2]
    elif token.kind is TokenKind.STRING:
        source = unquoted(reader.take().text)
    else:
        reader.refuse("Syntax Error\nExpecting the program between $$ and $$")
    return CreateFunction(
        name=name,
        kind=kind,
        parameters=parameters,
        returns=returns,
        language=language,
        source=source,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
    )


def insert(reader: Reader) -> Statement:
    reader.expect("INSERT", "INTO")
    name = reader.name()
    if reader.is_next("WITH") or reader.is_next("SELECT"):
        properties = source_properties(reader)
        return InsertInto(name=name, properties=properties, query=select(reader))
    columns: tuple[str, ...] = ()
    if reader.accept("("):
        columns = reader.listed(reader.name)
        reader.expect(")")
    reader.expect("VALUES", "(")
    values = () if reader.is_next(")") else reader.listed(lambda: value_expression(reader))
    reader.expect(")")
    return InsertValues(name=name, columns=columns, values=values)


def drop(reader: Reader) -> Statement:
    reader.expect("DROP")
    for word in ("TYPE", "CONNECTOR", "FUNCTION"):
        if reader.accept(word):
            if_exists = reader.accept("IF", "EXISTS")
            made = {"TYPE": DropType, "CONNECTOR": DropConnector, "FUNCTION": DropFunction}[word]
            return made(name=reader.name(), if_exists=if_exists)
    kind = _source_kind(reader)
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    return Drop(name=name, kind=kind, if_exists=if_exists, delete_topic=reader.accept("DELETE", "TOPIC"))


def alter(reader: Reader) -> Statement:
    reader.expect("ALTER")
    kind = _source_kind(reader)
    name = reader.name()
    columns = []
    while True:
        reader.expect("ADD")
        if reader.is_next("COLUMN") and reader.is_name(1):
            reader.take()
        columns.append((reader.name(), sql_type(reader)))
        if not reader.accept(","):
            return AlterSource(name=name, kind=kind, columns=tuple(columns))
