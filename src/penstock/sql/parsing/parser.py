"""`parse` is the one entry: the statements of a text, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from penstock.sql.parsing import statements as s
from penstock.sql.parsing.definitions import (
    alter,
    create,
    drop,
    insert,
    literal_value,
    source_properties,
)
from penstock.sql.parsing.queries import duration_ms, select
from penstock.sql.parsing.reading import Reader, SyntaxRefused
from penstock.sql.parsing.tokens import TokenKind
from penstock.streams.plan.expressions import Expression

__all__ = ["SyntaxRefused", "parse", "parse_expression"]


def parse(text: str, *, scripts: bool = False) -> list[s.Statement]:
    """`scripts`: RUN SCRIPT is a statement, too; it is the prompt's, and a server refuses it."""
    reader = Reader(text)
    try:
        return _all(reader, scripts=scripts)
    except RecursionError:
        raise SyntaxRefused("The statement is nested too deeply.", reader.token.place) from None


def _all(reader: Reader, *, scripts: bool) -> list[s.Statement]:
    text = reader.text
    found: list[s.Statement] = []
    while reader.token.kind is not TokenKind.END:
        start = reader.token
        statement = _statement(reader, scripts=scripts)
        _end(reader)
        end = reader.tokens[reader.at - 1].end
        found.append(replace(statement, text=text[start.start : end], place=start.place))
    return found


def parse_expression(text: str) -> Expression:
    from penstock.sql.parsing.expressions import expression

    reader = Reader(text)
    found = expression(reader)
    if reader.token.kind is not TokenKind.END:
        reader.refuse_here()
    return found


def _end(reader: Reader) -> None:
    if reader.accept(";"):
        return
    if reader.token.kind is TokenKind.END:
        reader.refuse("Syntax Error\nmissing ';' at '<EOF>'")
    opened = reader.tokens[reader.at - 1].text
    if opened in ("(", "[", "{"):
        reader.refuse("Syntax Error\nSyntax error at or near \";\"\n'}', ']', or ')' is missing")
    reader.refuse_here()


def _statement(reader: Reader, *, scripts: bool = False) -> s.Statement:
    word = reader.token.word
    if word == "RUN" and scripts:
        reader.expect("RUN", "SCRIPT")
        return s.RunScript(path=reader.string())
    read = _STATEMENTS.get(word)
    if read is None:
        reader.refuse(
            f"Syntax Error\nUnknown statement '{reader.token.text}'\nDid you mean '{_most_similar(reader.token.text)}'?"
        )
    return read(reader)


def _show(reader: Reader) -> s.Statement:
    reader.take()
    if reader.accept("CONNECTOR", "PLUGINS"):
        return s.ShowConnectorPlugins()
    shows_all = reader.accept("ALL")
    if reader.accept("TOPICS"):
        return s.ShowTopics(all=shows_all, extended=reader.accept("EXTENDED"))
    if shows_all:
        reader.expect("TOPICS")
    for name, extended in (("STREAMS", s.ShowStreams), ("TABLES", s.ShowTables), ("QUERIES", s.ShowQueries)):
        if reader.accept(name):
            return extended(extended=reader.accept("EXTENDED"))
    for name, plain in (
        ("PROPERTIES", s.ShowProperties),
        ("FUNCTIONS", s.ShowFunctions),
        ("TYPES", s.ShowTypes),
        ("VARIABLES", s.ShowVariables),
    ):
        if reader.accept(name):
            return plain()
    kind = reader.accept_any("SOURCE", "SINK")
    if not reader.accept("CONNECTORS"):
        reader.refuse_here()
    return s.ShowConnectors(kind=kind)


def _describe(reader: Reader) -> s.Statement:
    reader.expect("DESCRIBE")
    if reader.accept("STREAMS"):
        return s.DescribeStreams(extended=reader.accept("EXTENDED"))
    if reader.is_next("FUNCTION") and reader.is_name(1):
        reader.take()
        return s.DescribeFunction(name=reader.name_as_written())
    if reader.accept("CONNECTOR"):
        return s.DescribeConnector(name=reader.name())
    if reader.accept("EXTENDED"):
        return s.Describe(name=reader.name(), extended=True)  # as versions before ksqlDB wrote it
    is_tables = reader.is_next("TABLES")
    name = reader.name()
    extended = reader.accept("EXTENDED")
    return s.DescribeTables(extended=extended) if is_tables else s.Describe(name=name, extended=extended)


def _of_query(made: type[s.OfQuery]) -> Callable[[Reader], s.Statement]:
    def read(reader: Reader) -> s.Statement:
        reader.take()
        return made(query_id=None if reader.accept("ALL") else reader.name_as_written())

    return read


def _explain(reader: Reader) -> s.Statement:
    reader.expect("EXPLAIN")
    word = reader.token.word
    if word in _STATEMENTS and reader.ahead().text != ";":
        start = reader.token
        statement = _statement(reader)
        end = reader.tokens[reader.at - 1].end
        return s.Explain(
            statement=replace(statement, text=reader.text[start.start : end] + ";", place=start.place)
        )
    return s.Explain(query_id=reader.name())


def _print(reader: Reader) -> s.Statement:
    reader.expect("PRINT")
    topic = _resource(reader)
    from_beginning = reader.accept("FROM", "BEGINNING")
    interval = reader.integer() if reader.accept_any("INTERVAL", "SAMPLE") else None
    limit = reader.integer() if reader.accept("LIMIT") else None
    return s.Print(topic=topic, from_beginning=from_beginning, interval=interval, limit=limit)


def _resource(reader: Reader) -> str:
    """A topic or subject; not turned into upper case."""
    if reader.token.kind is TokenKind.STRING:
        return reader.string()
    return reader.name_as_written()


def _set(reader: Reader) -> s.Statement:
    reader.expect("SET")
    name = reader.string()
    reader.expect("=")
    return s.SetProperty(name=name, value=reader.string())


def _unset(reader: Reader) -> s.Statement:
    reader.expect("UNSET")
    return s.UnsetProperty(name=reader.string())


def _define(reader: Reader) -> s.Statement:
    reader.expect("DEFINE")
    name = _variable(reader)
    reader.expect("=")
    return s.Define(name=name, value=reader.string())


def _undefine(reader: Reader) -> s.Statement:
    reader.expect("UNDEFINE")
    return s.Undefine(name=_variable(reader))


def _variable(reader: Reader) -> str:
    if reader.token.kind is not TokenKind.WORD:
        reader.refuse_here()
    return reader.take().text


def _alter(reader: Reader) -> s.Statement:
    if not reader.accept("ALTER", "SYSTEM"):
        return alter(reader)
    name = reader.string()
    reader.expect("=")
    return s.AlterSystem(name=name, value=reader.string())


def _assert(reader: Reader) -> s.Statement:
    reader.expect("ASSERT")
    exists = not reader.accept("NOT", "EXISTS")
    if reader.accept("TOPIC"):
        topic = _resource(reader)
        properties = source_properties(reader)
        return s.AssertTopic(topic=topic, properties=properties, timeout_ms=_timeout(reader), exists=exists)
    if not reader.accept("SCHEMA"):
        reader.refuse_here()
    place = reader.token.place
    subject = _resource(reader) if reader.accept("SUBJECT") else None
    schema_id = literal_value(reader) if reader.accept("ID") else None
    if subject is None and schema_id is None:
        reader.refuse("ASSERT SCHEMA statements much include a subject name or an id", place)
    if schema_id is not None and not isinstance(schema_id, int):
        reader.refuse("ID must be an integer", place)
    return s.AssertSchema(subject=subject, id=schema_id, timeout_ms=_timeout(reader), exists=exists)


def _timeout(reader: Reader) -> int | None:
    return duration_ms(reader) if reader.accept("TIMEOUT") else None


_STATEMENTS: Final[dict[str, Callable[[Reader], s.Statement]]] = {
    "SELECT": select,
    "CREATE": create,
    "INSERT": insert,
    "DESCRIBE": _describe,
    "PRINT": _print,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "LIST": _show,
    "TERMINATE": _of_query(s.Terminate),
    "PAUSE": _of_query(s.Pause),
    "RESUME": _of_query(s.Resume),
    "DROP": drop,
    "SET": _set,
    "DEFINE": _define,
    "UNDEFINE": _undefine,
    "UNSET": _unset,
    "ASSERT": _assert,
    "ALTER": _alter,
}


def _most_similar(word: str) -> str:
    return min(_STATEMENTS, key=lambda known: _distance(known, word.upper()))


def _distance(one: str, other: str) -> int:
    """How many letters must be put in, taken out or changed."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
