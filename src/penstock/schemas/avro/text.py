"""The canonical text of a schema: what Java's `Schema.toString` writes; and the normalized one of Confluent's registry.

A named type is written whole where it comes first and by its name after that. The types of references are known before, so they
are written by name. Normalized: properties, aliases and the keys of objects are in order, numbers of defaults are of their type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from penstock.schemas.avro.json_text import java_order, quoted, written
from penstock.schemas.avro.nodes import NO_DEFAULT, Array, Enum, Field, Fixed, Map, Named, Node, Record, Union

_LOGICAL: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "big-decimal": ("bytes",),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "duration": ("fixed",),
}
_FIXED_BYTES: Final = {"uuid": 16, "duration": 12}


def text_of(root: Node, known: Iterable[str] = (), *, is_normal: bool = False) -> str:
    """`known`: the full names of types that are written by name only."""
    writing = _Writing(set(known), is_normal)
    writing.node(root, None)
    return "".join(writing.parts)


class _Writing:
    def __init__(self, known: set[str], is_normal: bool) -> None:
        self.parts: list[str] = []
        self._known = known
        self._is_normal = is_normal

    def node(self, node: Node, space: str | None) -> None:
        add = self.parts.append
        if isinstance(node, Named):
            self._named(node, space)
        elif isinstance(node, Union):
            between = "["
            for branch in node.branches:
                add(between)
                self.node(branch, space)
                between = ","
            add("]" if node.branches else "[]")
        elif isinstance(node, (Array, Map)):
            add('{"type":"array","items":' if isinstance(node, Array) else '{"type":"map","values":')
            self.node(node.children()[0], space)
            self._props(node)
            add("}")
        elif node.props:
            add(f'{{"type":"{node.type}"')
            self._props(node)
            add("}")
        else:
            add(f'"{node.type}"')

    def _named(self, node: Named, space: str | None) -> None:
        add, name = self.parts.append, node.name
        if name.full in self._known:
            add(quoted(name.within(space)))
            return
        self._known.add(name.full)
        is_error = isinstance(node, Record) and node.is_error and not self._is_normal
        add(f'{{"type":"{"error" if is_error else node.type}","name":{quoted(name.simple)}')
        if name.space != space:
            add(f',"namespace":{quoted(name.space or "")}')
        if node.doc or (node.doc is not None and not self._is_normal):
            add(f',"doc":{quoted(node.doc)}')
        if isinstance(node, Record):
            add(',"fields":[')
            for number, field in enumerate(node.fields.values()):
                add(f'{"," if number else ""}{{"name":{quoted(field.name)},"type":')
                self.node(field.type, name.space)
                self._field(field)
            add("]")
        elif isinstance(node, Enum):
            add(f',"symbols":{written(node.symbols)}')
            if node.default is not None:
                add(f',"default":{quoted(node.default)}')
        elif isinstance(node, Fixed):
            add(f',"size":{node.size}')
        self._props(node)
        if node.aliases:
            aliases = node.aliases
            if self._is_normal:
                in_full = dict(zip(node.alias_names, aliases, strict=True))
                aliases = [in_full[alias] for alias in sorted(in_full, key=java_order)]
            add(f',"aliases":{written([alias.within(name.space) for alias in aliases])}')
        add("}")

    def _field(self, field: Field) -> None:
        """What comes after its type."""
        add = self.parts.append
        if field.doc is not None:
            add(f',"doc":{quoted(field.doc)}')
        self._default(field)
        if field.order != "ascending":
            add(f',"order":"{field.order}"')
        if field.aliases:
            aliases = sorted(field.aliases, key=java_order) if self._is_normal else field.aliases
            add(f',"aliases":{written(aliases)}')
        for name in sorted(field.props, key=java_order) if self._is_normal else field.props:
            add(f",{quoted(name)}:{written(field.props[name], is_sorted=self._is_normal)}")
        add("}")

    def _default(self, field: Field) -> None:
        if field.default is NO_DEFAULT:
            return
        default = _of_type(field.default, field.type) if self._is_normal else field.default
        self.parts.append(f',"default":{written(default, is_sorted=self._is_normal)}')

    def _props(self, node: Node) -> None:
        names = list(node.props)
        if self._is_normal:
            first = _logical(node)
            names = first + sorted(set(names).difference(first), key=java_order)
        for name in names:
            self.parts.append(f",{quoted(name)}:{written(node.props[name], is_sorted=self._is_normal)}")


def _logical(node: Node) -> list[str]:
    """The properties of a logical type, when it is a valid one: they come first."""
    name = node.props.get("logicalType")
    if not isinstance(name, str) or node.type not in _LOGICAL.get(name, ()):
        return []
    size = node.size if isinstance(node, Fixed) else None
    if size is not None and _FIXED_BYTES.get(name, size) != size:
        return []
    if name != "decimal":
        return ["logicalType"]
    precision, scale = node.props.get("precision"), node.props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or bool in (type(precision), type(scale)):
        return []
    if precision <= 0 or not 0 <= scale <= precision:
        return []
    if size is not None and precision > math.floor(math.log10(2) * (8 * size - 1)):
        return []
    return ["logicalType", "precision", *(["scale"] if scale else [])]


def _of_type(value: Any, node: Node) -> Any:
    """A default with its numbers in the form of their type: 1 is 1.0 for a double."""
    if isinstance(node, Union):
        branches = [branch for branch in node.branches if branch.type != "null"]
        fitting = (branch for branch in branches if _fits(value, branch))
        return value if value is None else _of_type(value, next(fitting, Node("null")))
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)) and node.type in ("float", "double"):
        return float(value)
    if isinstance(value, list) and isinstance(node, Array):
        return [_of_type(each, node.items) for each in value]
    if isinstance(value, dict) and isinstance(node, Map):
        return {key: _of_type(each, node.values) for key, each in value.items()}
    if isinstance(value, dict) and isinstance(node, Record):
        return {
            key: _of_type(each, node.fields[key].type) if key in node.fields else each
            for key, each in value.items()
        }
    return value


def _fits(value: Any, node: Node) -> bool:
    """Whether Confluent's registry takes a default for one of this branch: the first that fits."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return node.type in ("int", "long", "float", "double")
    if isinstance(value, float):
        return node.type in ("float", "double")
    if isinstance(value, str):
        return node.type in ("string", "enum", "bytes", "fixed")
    return node.type == "array" if isinstance(value, list) else node.type in ("map", "record")
