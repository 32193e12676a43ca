"""What a schema says, by the kind of value that it speaks of: the form in which two schemas are compared.

A schema's keywords fall into groups: those of strings, of numbers, of objects, of arrays, `enum`, `const`, `not`, `if`, and
`allOf`, `anyOf`, `oneOf`. One group makes one node; several make an `allOf` of them. So does Confluent's registry, whose rules
compare these groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple, Protocol

ALL: Final = "allOf"
ANY: Final = "anyOf"
ONE: Final = "oneOf"


class Child(Protocol):
    """A schema in a schema. It becomes a node when it is asked for: schemas may contain themselves."""

    @property
    def node(self) -> Node: ...

    @property
    def has_default(self) -> bool: ...

    @property
    def key(self) -> str:
        """The same for the same text."""


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """Nodes are compared by identity."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: str | None = None
    """As a key: the same text for the same JSON."""
    connect_type: Any = None


@dataclass(slots=True, eq=False, kw_only=True)
class Anything(Node):
    """`{}` and `true`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Nothing(Node):
    """`false`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Boolean(Node):
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class Null(Node):
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class String(Node):
    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Number(Node):
    is_integer: bool = False
    maximum: Decimal | None = None
    minimum: Decimal | None = None
    exclusive_maximum: Decimal | None = None
    exclusive_minimum: Decimal | None = None
    multiple_of: Decimal | None = None


class PatternProperty(NamedTuple):
    pattern: str
    matcher: Any
    """A validator of strings: no expression can hang it."""
    child: Child


@dataclass(slots=True, eq=False, kw_only=True)
class Object(Node):
    properties: dict[str, Child] = field(default_factory=dict)
    pattern_properties: tuple[PatternProperty, ...] = ()
    is_closed: bool = False
    """additionalProperties: false"""
    additional: Child | None = None
    unevaluated: Child | None = None
    required: frozenset[str] = frozenset()
    max_properties: int | None = None
    min_properties: int | None = None
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Child] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class Array(Node):
    every: Child | None = None
    """The schema of all items."""
    items: tuple[Child, ...] = ()
    """Of the first, the second …"""
    is_closed: bool = False
    """additionalItems: false"""
    additional: Child | None = None
    unevaluated: Child | None = None
    max_items: int | None = None
    min_items: int | None = None
    max_contains: int | None = None
    min_contains: int | None = None
    is_unique: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class Enum(Node):
    values: frozenset[str]


@dataclass(slots=True, eq=False, kw_only=True)
class Const(Node):
    value: str


@dataclass(slots=True, eq=False, kw_only=True)
class Not(Node):
    child: Child


@dataclass(slots=True, eq=False, kw_only=True)
class Conditional(Node):
    """if, then, else. What they say is not compared."""


@dataclass(slots=True, eq=False, kw_only=True)
class Combined(Node):
    criterion: str
    parts: tuple[Child, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class Reference(Node):
    target: Child | None
    """None: what it leads to is not known before a value is looked at."""
