"""What an App has collected: its nodes, names, stores and topics. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from penstock.streams.formats.codecs import FormatRefused, key_codec, value_codec
from penstock.streams.library.failures import TopologyError, one_line, unknown
from penstock.streams.library.types import sql_type
from penstock.streams.library.values import BARE
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node, Plan
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, Timestamp, Window
from penstock.streams.schema_memory import MemoryRegistry

FORMATS: Final = ("JSON", "KAFKA", "DELIMITED", "NONE", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")
WITH_REGISTRY: Final = ("AVRO", "JSON_SR", "PROTOBUF")
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,200}")
N = TypeVar("N", bound=Node)


@dataclass
class Program:
    """`names` of nodes are Kafka Streams': a word and a number, which stay the same as long as the program declares
    the same things
    in the same order. What has a name of its own keeps it wherever it stands."""

    name: str
    key_format: Format
    value_format: Format
    has_registry: bool
    properties: Mapping[str, str] = field(default_factory=dict)
    made: list[Node] = field(default_factory=list)
    stores: dict[str, Node] = field(default_factory=dict)
    """By the store's name: the table whose rows it answers."""
    store_formats: dict[str, Format] = field(default_factory=dict)
    sources: dict[str, list[Source]] = field(default_factory=dict)
    sinks: dict[str, nodes.Write] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """By the node's name: the Python function that stands there."""
    _numbers: int = 0

    def next_name(self, word: str) -> str:
        self._numbers += 1
        return f"{word}-{self._numbers - 1:010d}"

    def named(self, given: str | None, word: str) -> str:
        """A name that the program gives, once, or the next."""
        number = self.next_name(word)
        if given is None:
            return number
        if _NAME.fullmatch(given) is None or given in (".", ".."):
            raise TopologyError(
                f"'{given}' cannot be a part of a topic's name: letters, digits, dots, underscores and hyphens can"
            )
        if any(node.name == given for node in self.made):
            raise TopologyError(f"there is something with the name '{given}' already")
        return given

    def add(self, node: N) -> N:
        self.made.append(node)
        return node

    def plan(self) -> Plan:
        """Everything that has an effect: what writes, what is kept in a store, what calls a function."""
        if not self.made:
            raise TopologyError(f"the app {self.name} reads no topic: begin with app.stream() or app.table()")
        kept = {id(node) for node in self.stores.values()}
        effects = [node for node in self.made if isinstance(node, _EFFECTS) or id(node) in kept]
        before = {id(each) for node in effects for one in nodes.inputs(node) for each in Plan((one,)).nodes()}
        ends = [node for node in effects if id(node) not in before]
        if not effects:
            raise TopologyError(
                f"the app {self.name} does nothing with what it reads: end with to(), foreach(), process() or a store"
            )
        return Plan(tuple(ends), tuple(sorted(self.properties.items())))

    def format(self, given: str | Format | None, default: Format) -> Format:
        if given is None:
            return default
        if isinstance(given, Format):
            return given
        name = str(given).upper()
        if name not in FORMATS:
            raise unknown("format", str(given), FORMATS)
        if name in WITH_REGISTRY and not self.has_registry:
            raise TopologyError(
                f"{name} needs a schema registry: App({self.name!r}, registry='http://localhost:8081')"
            )
        return Format(name)

    def formats(self, schema: Schema, key: str | Format | None, value: str | Format | None) -> Formats:
        """Refuses columns that the format cannot carry."""
        key_format = self.format(key, self.key_format) if schema.key else Format("NONE")
        value_format = self.format(value, self.value_format)
        is_bare = len(schema.value) == 1 and schema.value[0].name == BARE
        formats = Formats(key_format, value_format, wrap_value=not is_bare)
        try:
            key_codec(schema, formats, window=None, topic="", registry=MemoryRegistry())
            value_codec(schema, formats, topic="", registry=MemoryRegistry())
        except FormatRefused as refused:
            raise TopologyError(one_line(refused)) from None
        return formats

    def source(self, topic: str) -> Source:
        """The first declaration of a topic that is read."""
        if topic not in self.sources:
            raise unknown("topic that is read", topic, self.sources)
        return self.sources[topic][0]

    def sink(self, topic: str) -> nodes.Write:
        if topic not in self.sinks:
            raise unknown("topic that is written", topic, self.sinks)
        return self.sinks[topic]

    def keep(self, store: str, node: Node, key_format: Format) -> None:
        self.stores[store], self.store_formats[store] = node, key_format

    def repartitioned(self, node: Node, formats: Formats, name: str | None = None) -> nodes.Repartition:
        word = "KTABLE-REPARTITION" if node.kind is nodes.TABLE else "KSTREAM-REPARTITION"
        return self.add(
            nodes.Repartition(
                name=self.named(name, word),
                schema=node.schema,
                kind=node.kind,
                window=node.window,
                input=node,
                formats=formats,
            )
        )

    def internal_formats(self, schema: Schema, key: Format | None = None) -> Formats:
        """Of topics that the program makes for itself: with `key`, that of a topic that is joined; else the app's own
        where it carries
        these columns without a registry."""
        formats = Formats(key or self.key_format, Format("JSON"))
        if key is not None:
            return formats
        try:
            key_codec(schema, formats, window=None, topic="")
        except FormatRefused:
            return Formats(Format("JSON"), Format("JSON"))
        return formats


_EFFECTS: Final = (nodes.Write, nodes.PythonStep, nodes.PythonProcessor, nodes.Aggregate, nodes.ToTable)


def columns_of(declared: Any, *, is_key: bool) -> tuple[Column, ...]:
    """A dict of columns, or one type: then the column is called `key` or `value`."""
    what = "key" if is_key else BARE
    if declared is None:
        return ()
    if isinstance(declared, dict):
        if not declared:
            raise TopologyError(f"the {what} has no columns: leave it out, or name one")
        found = tuple(Column(_checked(name), sql_type(each)) for name, each in declared.items())
    else:
        found = (Column(what, sql_type(declared)),)
    return found


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TopologyError(f"a name of a column is a text, not {name!r}")
    if name in PSEUDO_COLUMNS or name in WINDOW_BOUNDS:
        raise TopologyError(f"{name} is a record's own: no column can have this name")
    return name


def schema_of(key: tuple[Column, ...], value: tuple[Column, ...], headers: Any = ()) -> Schema:
    """Names are unique over key and value."""
    seen: set[str] = set()
    for column in (*key, *value):
        _checked(column.name)
        if column.name in seen:
            raise TopologyError(f"there are two columns '{column.name}': give one of them another name")
        seen.add(column.name)
    if not value:
        raise TopologyError("the value has no columns")
    return Schema(key, value, tuple(headers))


def timestamp_of(given: Any, schema: Schema) -> Timestamp | None:
    """A column, or a column and its pattern."""
    if given is None:
        return None
    name, pattern = given if isinstance(given, tuple) else (given, None)
    type_ = schema.type_of(name)
    if type_ is None:
        raise unknown("column", str(name), [column.name for column in (*schema.key, *schema.value)])
    if (type_.kind.value == "STRING") != (pattern is not None) or type_.kind.value not in (
        "STRING", "BIGINT", "TIMESTAMP",
    ):  # fmt: skip
        raise TopologyError(
            f"the time of a record is a column of int or datetime, or a pair of a column of str and its pattern: {name} "
            f"is {type_}"
        )
    return Timestamp(name, pattern)


def window_text(window: Window | None) -> str:
    return "no windows" if window is None else f"{window.kind.value.lower()} windows"
