"""Lookups by key that differ from an earlier one in nothing but their key are not parsed, analysed and compiled again.

    SELECT * FROM VISITS WHERE PAGE = 'home';      the first is worked out, and kept as  SELECT * FROM VISITS WHERE PAGE = '?';
    SELECT * FROM VISITS WHERE PAGE = 'about';     is that with another key

Only texts with one literal are looked at, and only those of which analysis has said that the literal is the key, compared with =
and nothing else. Then the rows under another key are the answer to the text with that key. It holds as long as the source and the
settings are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from penstock.sql.analysis.pulling import Lookup, PlannedPull
from penstock.sql.engine.results import Header
from penstock.sql.engine.state import State
from penstock.sql.functions.definition import Definition
from penstock.streams.kernel.compiling import compile_items
from penstock.streams.kernel.records import Row
from penstock.streams.plan.expressions import ColumnRef, Comparison, Expression, Literal
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Source, SourceKind
from penstock.streams.plan.types import Kind

MAX_SHAPES: Final = 1000
MAX_CHARACTERS: Final = 2000
"""Of a text. In a longer one the literal is not looked for."""
_NUMBER: Final = re.compile(r"(?<![\w.@$])[0-9]{1,9}(?![\w.@$])")
_OTHERWISE: Final = ('"', "`", "--", "/*")
"""Names in quotes and comments: a ' or a digit may stand in them. Variables ($) are not looked at at all."""


Settings = tuple[tuple[tuple[str, str], ...], tuple[Definition, ...]]


class Shape(NamedTuple):
    """A text without its only literal."""

    text: str
    literal: str | int


def shape_of(text: str) -> Shape | None:
    if len(text) > MAX_CHARACTERS or "$" in text:
        return None
    quotes = text.count("'")
    if quotes == 2:
        begin, end = text.index("'"), text.rindex("'")
        around = text[:begin], text[end + 1 :]
        if any(each in part for each in _OTHERWISE for part in around):
            return None
        return Shape(f"{around[0]}'?'{around[1]}", text[begin + 1 : end])
    if quotes or any(each in text for each in _OTHERWISE):
        return None
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    begin, end = numbers[0].span()
    return Shape(f"{text[:begin]}?{text[end:]}", int(numbers[0][0]))


@dataclass(frozen=True, slots=True)
class QuickLookup:
    source: Source
    schema: Schema
    keys: frozenset[str]
    """Columns of the answer that are keys."""
    project: Callable[[Row], tuple[Any, ...]]
    limit: int | None
    settings: Settings

    def header(self, query_id: str) -> Header:
        return Header(query_id, self.schema, self.keys)


class QuickLookups:
    """Any thread may ask."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], QuickLookup] = {}

    def find(
        self, text: str, properties: Mapping[str, str], state: State
    ) -> tuple[QuickLookup, tuple[Any, ...]] | None:
        """The lookup, and the key that this text asks for."""
        shape = shape_of(text)
        if shape is None:
            return None
        found = self._known.get(_place(shape, properties))
        if found is None or state.sources.get(found.source.name) is not found.source:
            return None
        return (found, (shape.literal,)) if found.settings == _settings(state) else None

    def remember(
        self,
        text: str,
        properties: Mapping[str, str],
        state: State,
        planned: PlannedPull,
        header: Header,
    ) -> None:
        """If it is of the kind, and the whole of `text` is this one statement."""
        lookup, shape = planned.lookup, shape_of(text)
        if (
            not planned.is_plain
            or lookup is None
            or shape is None
            or not _is_by_key_alone(lookup, shape.literal)
        ):
            return
        if state.sources.get(lookup.source.name) is not lookup.source:
            return
        if len(self._known) >= MAX_SHAPES:
            self._known.clear()
        project = compile_items(lookup.items, lookup.source.schema)
        self._known[_place(shape, properties)] = QuickLookup(
            lookup.source, lookup.schema, header.keys, project, planned.limit, _settings(state)
        )


def _place(shape: Shape, properties: Mapping[str, str]) -> tuple[Any, ...]:
    return shape.text, type(shape.literal), tuple(sorted(properties.items()))


def _settings(state: State) -> Settings:
    return tuple(state.properties.items()), tuple(state.functions.values())


def _is_by_key_alone(lookup: Lookup, literal: str | int) -> bool:
    """`KEY = literal` is all that WHERE says, and the types are the same, so that equal values are equal keys."""
    source, condition = lookup.source, lookup.predicate
    if source.kind is not SourceKind.TABLE or len(source.schema.key) != 1 or lookup.keys != ((literal,),):
        return False
    kinds = (Kind.STRING,) if isinstance(literal, str) else (Kind.INTEGER, Kind.BIGINT)
    key = source.schema.key[0]
    if key.type.kind not in kinds or not isinstance(condition, Comparison) or condition.operator != "=":
        return False
    sides = condition.left, condition.right
    return any(
        _is_column(one, key.name) and _is_literal(other, literal) for one, other in (sides, sides[::-1])
    )


def _is_column(expression: Expression, name: str) -> bool:
    return isinstance(expression, ColumnRef) and expression.name == name


def _is_literal(expression: Expression, literal: str | int) -> bool:
    return (
        isinstance(expression, Literal)
        and expression.value == literal
        and type(expression.value) is type(literal)
    )
