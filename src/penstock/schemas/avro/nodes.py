"""The tree that a schema is. A type that is named in two places is one node, so a recursive type is a circle of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from penstock.schemas.model import MAX_DEPTH, InvalidSchema

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
TYPES: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}
MAX_VALUE_DEPTH: Final = 120
"""Of arrays, maps and records in a value; with the branches of unions its JSON is twice as deep, and orjson writes 254."""
NO_DEFAULT: Final = object()
"""Of a field: None is the default null."""


class Name(NamedTuple):
    simple: str
    space: str | None

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple

    def within(self, space: str | None) -> str:
        """As it is written inside of a type with this namespace."""
        if self.space is not None and self.space == space and self.simple not in TYPES:
            return self.simple
        return self.full


def name_of(text: str, space: str | None) -> Name:
    """A name with a dot has its own namespace."""
    before, dot, simple = text.rpartition(".")
    return Name(simple, (before if dot else space) or None)


@dataclass(slots=True, eq=False)
class Node:
    type: str
    """One of TYPES."""
    props: dict[str, Any] = field(default_factory=dict)
    """What the schema says besides, such as `logicalType`."""

    @property
    def full_name(self) -> str:
        """By which a union knows its branch."""
        return self.type

    def children(self) -> list[Node]:
        return []

    def replace(self, found: dict[int, Node]) -> None:
        """Children that `found` knows by their `id` become what it says."""


@dataclass(slots=True, eq=False)
class Array(Node):
    items: Node = field(kw_only=True)

    def children(self) -> list[Node]:
        return [self.items]

    def replace(self, found: dict[int, Node]) -> None:
        self.items = found.get(id(self.items), self.items)


@dataclass(slots=True, eq=False)
class Map(Node):
    values: Node = field(kw_only=True)

    def children(self) -> list[Node]:
        return [self.values]

    def replace(self, found: dict[int, Node]) -> None:
        self.values = found.get(id(self.values), self.values)


@dataclass(slots=True, eq=False)
class Union(Node):
    branches: list[Node] = field(kw_only=True)

    def children(self) -> list[Node]:
        return self.branches

    def replace(self, found: dict[int, Node]) -> None:
        self.branches = [found.get(id(branch), branch) for branch in self.branches]


@dataclass(slots=True, eq=False)
class Forward(Node):
    """A name that is not known yet: what it stands for may come later in the text."""

    name: str = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Named(Node):
    name: Name = field(kw_only=True)
    doc: str | None = field(kw_only=True, default=None)
    aliases: list[Name] = field(kw_only=True, default_factory=list)

    @property
    def full_name(self) -> str:
        return self.name.full

    @property
    def alias_names(self) -> list[str]:
        """In full; an alias without a namespace of a type with one begins with a dot."""
        return [
            f".{each.simple}" if each.space is None and self.name.space is not None else each.full
            for each in self.aliases
        ]


@dataclass(slots=True, eq=False)
class Enum(Named):
    symbols: list[str] = field(kw_only=True)
    default: str | None = field(kw_only=True, default=None)


@dataclass(slots=True, eq=False)
class Fixed(Named):
    size: int = field(kw_only=True)


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Node
    doc: str | None = None
    default: Any = NO_DEFAULT
    order: str = "ascending"
    aliases: list[str] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


@dataclass(slots=True, eq=False)
class Record(Named):
    fields: dict[str, Field] = field(kw_only=True, default_factory=dict)
    is_error: bool = field(kw_only=True, default=False)

    def children(self) -> list[Node]:
        return [each.type for each in self.fields.values()]

    def replace(self, found: dict[int, Node]) -> None:
        for each in self.fields.values():
            each.type = found.get(id(each.type), each.type)


def visited(root: Node) -> Iterator[Node]:
    """Every node once, each before what is in it. InvalidSchema when the way to one, which is also how deeply the text with
    everything in it is nested, is too long."""
    seen = {id(root)}
    yield root
    way = [iter(root.children())]
    while way:
        node = next(way[-1], None)
        if node is None:
            way.pop()
        elif id(node) not in seen:
            seen.add(id(node))
            yield node
            way.append(iter(node.children()))
            if len(way) > MAX_DEPTH:
                raise InvalidSchema(f"its types are nested more than {MAX_DEPTH} deep")


def equal(one: Node, other: Node) -> bool:
    """Whether they are the same type to Avro: documentation and aliases do not count."""
    todo, seen = [(one, other)], set()
    while todo:
        left, right = todo.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        seen.add((id(left), id(right)))
        if _outside(left) != _outside(right):
            return False
        todo += zip(left.children(), right.children(), strict=True)
    return True


def _outside(node: Node) -> tuple[Any, ...]:
    """What it says itself."""
    said: tuple[Any, ...] = (node.type, node.props, len(node.children()))
    if isinstance(node, Forward):
        said += (node.name,)
    if isinstance(node, Named):
        said += (node.name,)
    if isinstance(node, Enum):
        said += (node.symbols,)
    if isinstance(node, Fixed):
        said += (node.size,)
    if isinstance(node, Record):
        said += (
            [
                (
                    each.name,
                    each.has_default,
                    each.default if each.has_default else None,
                    each.order,
                    each.props,
                )
                for each in node.fields.values()
            ],
        )
    return said
