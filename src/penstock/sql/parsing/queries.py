"""SELECT, from its items to LIMIT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.sql.parsing.expressions import expression, primary, value_expression
from penstock.sql.parsing.reading import Reader, SyntaxRefused
from penstock.sql.parsing.statements import (
    Emit,
    FromSource,
    Join,
    OrderItem,
    Select,
    SelectAll,
    SelectExpression,
    SelectFields,
    SelectItem,
    WindowClause,
    Within,
)
from penstock.sql.parsing.tokens import TokenKind
from penstock.streams.plan.expressions import Expression, Place
from penstock.streams.plan.nodes import JoinKind
from penstock.streams.plan.sources import WindowKind

SUBQUERY: Final = "SUBQUERY"
"""The name of a SELECT in FROM that the text does not name."""
_UNITS_MS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 24 * 3_600_000,
}


def select(reader: Reader) -> Select:
    start = reader.token
    reader.expect("SELECT")
    is_distinct = reader.accept("DISTINCT")
    items = reader.listed(lambda: _item(reader))
    reader.expect("FROM")
    source = _source(reader)
    joins: list[Join] = []
    while (joined := _join(reader)) is not None:
        joins.append(joined)
    window = _window(reader) if reader.accept("WINDOW") else None
    where = expression(reader) if reader.accept("WHERE") else None
    group_by = _expressions(reader) if reader.accept("GROUP", "BY") else None
    partition_by = _expressions(reader) if reader.accept("PARTITION", "BY") else None
    having = expression(reader) if reader.accept("HAVING") else None
    order_by = reader.listed(lambda: _order_item(reader)) if reader.accept("ORDER", "BY") else ()
    emit = _emit(reader)
    limit = reader.integer() if reader.accept("LIMIT") else None
    return Select(
        items=items,
        source=source,
        joins=tuple(joins),
        window=window,
        where=where,
        group_by=group_by,
        partition_by=partition_by,
        having=having,
        order_by=order_by,
        is_distinct=is_distinct,
        emit=emit,
        limit=limit,
        place=start.place,
        text=reader.text[start.start : reader.tokens[reader.at - 1].end],
    )


def _order_item(reader: Reader) -> OrderItem:
    place = reader.token.place
    found = value_expression(reader)
    is_descending = reader.accept_any("ASC", "DESC") == "DESC"
    nulls_first = None
    if reader.accept("NULLS"):
        word = reader.accept_any("FIRST", "LAST")
        if word is None:
            reader.refuse("Syntax Error\nExpecting {'FIRST', 'LAST'}")
        nulls_first = word == "FIRST"
    return OrderItem(found, is_descending, nulls_first, place)


def _emit(reader: Reader) -> Emit | None:
    if not reader.accept("EMIT"):
        return None
    found = reader.accept_any("CHANGES", "FINAL")
    if found is None:
        reader.refuse("Syntax Error\nExpecting {'CHANGES', 'FINAL'}")
    return Emit(found)


def _item(reader: Reader) -> SelectItem:
    place = reader.token.place
    if reader.accept("*"):
        return SelectAll(place=place)
    if reader.is_name() and reader.ahead().text == "." and reader.ahead(2).text == "*":
        name = reader.name()
        reader.expect(".", "*")
        return SelectAll(name, place)
    start = reader.at
    fields = _fields(reader, place)
    if fields is not None:
        return fields
    reader.at = start
    found = expression(reader)
    if reader.accept("AS") or reader.is_name():
        return SelectExpression(found, reader.name(), place)
    return SelectExpression(found, None, place)


def _fields(reader: Reader, place: Place) -> SelectFields | None:
    """`struct->*`"""
    try:
        base = primary(reader)
    except SyntaxRefused:
        return None
    return SelectFields(base, place) if reader.accept("->", "*") else None


def _source(reader: Reader) -> FromSource:
    place = reader.token.place
    if reader.accept("("):
        query = select(reader)
        reader.expect(")")
        named = reader.accept("AS") or (reader.is_name() and not _clause_begins(reader))
        alias = reader.name() if named else SUBQUERY
        return FromSource(alias, alias, place, query)
    name = reader.name()
    if reader.accept("AS"):
        return FromSource(name, reader.name(), place)
    if reader.is_name() and not _clause_begins(reader):
        return FromSource(name, reader.name(), place)
    return FromSource(name, name, place)


def _clause_begins(reader: Reader) -> bool:
    """With a word that may also be a name."""
    return (
        reader.is_next("PARTITION", "BY")
        or reader.is_next("ORDER", "BY")
        or (reader.is_next("EMIT") and reader.ahead().word in ("CHANGES", "FINAL"))
    )


def _join(reader: Reader) -> Join | None:
    place = reader.token.place
    kind = JoinKind.INNER
    start = reader.at
    word = reader.accept_any("INNER", "LEFT", "RIGHT", "FULL")
    if word:
        kind = JoinKind(word)
        if word != "INNER":
            reader.accept("OUTER")
        reader.expect("JOIN")
    elif not reader.accept("JOIN"):
        reader.at = start
        return None
    source = _source(reader)
    within = _within(reader) if reader.accept("WITHIN") else None
    reader.expect("ON")
    return Join(kind, source, expression(reader), within, place)


def _within(reader: Reader) -> Within:
    if reader.accept("("):
        before = duration_ms(reader)
        reader.expect(",")
        after = duration_ms(reader)
        reader.expect(")")
    else:
        before = after = duration_ms(reader)
    grace = duration_ms(reader) if reader.accept("GRACE", "PERIOD") else None
    return Within(before, after, grace)


def _window(reader: Reader) -> WindowClause:
    if reader.is_name() and not reader.is_next("SESSION", "("):
        reader.take()  # a name for the window, of which nobody makes use
    place = reader.token.place
    word = reader.accept_any("TUMBLING", "HOPPING", "SESSION")
    if word is None:
        reader.refuse("Syntax Error\nExpecting {'TUMBLING', 'HOPPING', 'SESSION'}")
    kind = WindowKind(word)
    reader.expect("(")
    if kind is not WindowKind.SESSION:
        reader.expect("SIZE")
    size = duration_ms(reader)
    advance = 0
    if kind is WindowKind.HOPPING:
        reader.expect(",", "ADVANCE", "BY")
        advance = duration_ms(reader)
    retention = duration_ms(reader) if reader.accept(",", "RETENTION") else None
    grace = duration_ms(reader) if reader.accept(",", "GRACE", "PERIOD") else None
    reader.expect(")")
    return WindowClause(kind, size, advance, retention, grace, place)


def duration_ms(reader: Reader) -> int:
    count = reader.integer()
    word = reader.token.word
    unit = _UNITS_MS.get(word.removesuffix("S"))
    if unit is None:
        reader.refuse_here()
    reader.take()
    return count * unit


def _expressions(reader: Reader) -> tuple[Expression, ...]:
    """`a, b` or `(a, b)`. `(a), b` is a list of two."""
    start = reader.at
    try:
        return _plain(reader)
    except SyntaxRefused as plain_refused:
        reader.at = start
        if not reader.accept("("):
            raise
        if reader.accept(")"):
            return ()
        found = _attempt(reader, lambda: _plain(reader))
        if found is None or not reader.accept(")") or not _ends(reader):
            raise plain_refused from None
        return found


def _plain(reader: Reader) -> tuple[Expression, ...]:
    return reader.listed(lambda: value_expression(reader))


def _attempt(reader: Reader, one: Callable[[], tuple[Expression, ...]]) -> tuple[Expression, ...] | None:
    try:
        return one()
    except SyntaxRefused:
        return None


def _ends(reader: Reader) -> bool:
    token = reader.token
    return (
        token.kind is TokenKind.END
        or token.text == ";"
        or token.text == ")"
        or token.word in ("PARTITION", "HAVING", "ORDER", "EMIT", "LIMIT")
    )
