"""A text becomes an `AvroSchema`, by the rules of Apache Avro's Java library.

Types that are referred to are parsed before the schema, in the order that they are given in, and known by their full names. A
name may stand before its definition. A type may be defined twice if both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.schemas.avro.json_text import read, shown
from penstock.schemas.avro.nodes import (
    NO_DEFAULT,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Forward,
    Map,
    Name,
    Named,
    Node,
    Record,
    Union,
    equal,
    name_of,
    visited,
)
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import MAX_DEPTH, InvalidSchema, Referred, SchemaReference

MAX_FIXED_BYTES: Final = (1 << 31) - 9
_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_DECIMAL: Final = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SUFFIXES: Final = tuple("dDfF")
_ORDERS: Final = ("ascending", "descending", "ignore")


def parse(text: str, references: Sequence[SchemaReference], texts: Mapping[str, Referred]) -> AvroSchema:
    for reference in references:
        if reference.name not in texts:
            raise InvalidSchema(f"there is no text for the reference {reference.name}")
    known = _Types()
    try:
        roots = [known.parse(referred.text) for referred in texts.values()]
        root = known.parse(text)
        return AvroSchema.of(root, tuple(references), dict(texts), [each.full_name for each in roots])
    except RecursionError:
        raise InvalidSchema("its JSON is nested too deeply") from None


class _Types:
    """The types that texts have defined so far."""

    def __init__(self) -> None:
        self._by_name: dict[str, Named] = {}
        self._forward: list[Forward] = []
        self._depth = 0
        self._makers: dict[str, Callable[[dict[str, Any], str | None], Node]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }

    def parse(self, text: str) -> Node:
        root = self._node(read(text), None)
        if self._forward:
            root = self._with_forward_names(root)
        for node in visited(root):
            if isinstance(node, Union):
                _check_branches(node)
        return root

    def _with_forward_names(self, root: Node) -> Node:
        found: dict[int, Node] = {}
        for each in self._forward:
            if each.name not in self._by_name:
                raise InvalidSchema(f"Undefined name: {each.name}")
            found[id(each)] = self._by_name[each.name]
        todo: list[Node] = [root, *self._by_name.values()]
        seen: set[int] = set()
        while todo:
            node = todo.pop()
            if id(node) not in seen:
                seen.add(id(node))
                node.replace(found)
                todo += node.children()
        self._forward = []
        return found.get(id(root), root)

    def _node(self, said: Any, space: str | None) -> Node:
        if isinstance(said, str):
            return self._find(said, space)
        self._depth += 1  # an error ends the whole: nobody counts back
        if self._depth > MAX_DEPTH:
            raise InvalidSchema(f"its types are nested more than {MAX_DEPTH} deep")
        node: Node
        if isinstance(said, list):
            branches = []
            for each in said:  # a comprehension would be one more call on the stack
                branches.append(self._node(each, space))
            node = Union("union", branches=branches)
        elif isinstance(said, dict):
            type_ = _required(said, "type", "No type")
            make = self._makers.get(type_)
            if type_ in PRIMITIVES:
                node = Node(type_, _props(said, _RESERVED))
            else:
                node = self._find(type_, space) if make is None else make(said, space)
        else:
            raise InvalidSchema(f"Schema not yet supported: {shown(said)}")
        self._depth -= 1
        return node

    def _find(self, name: str, space: str | None) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = f"{space}.{name}" if space and "." not in name else name
        found = self._by_name.get(full) or self._by_name.get(name)
        if found is not None:
            return found
        self._forward.append(Forward("forward", name=full))
        return self._forward[-1]

    def _record(self, said: dict[str, Any], space: str | None) -> Node:
        name = _name(said, space)
        record = Record(
            "record",
            _props(said, _RESERVED),
            name=name,
            doc=_text(said, "doc"),
            aliases=_aliases(said, name),
            is_error=said["type"] == "error",
        )
        before = self._by_name.setdefault(name.full, record)
        fields = said.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {shown(said)}")
        for each in fields:
            field_name = _required(each, "name", "No field name")
            if "type" not in each:
                raise InvalidSchema(f"No field type: {shown(each)}")
            made = _field(field_name, each, self._node(each["type"], name.space))
            if made.name in record.fields:
                raise InvalidSchema(f"Duplicate field {made.name} in record {name.full}")
            record.fields[made.name] = made
        return _same(before, record)

    def _enum(self, said: dict[str, Any], space: str | None) -> Node:
        name = _name(said, space)
        symbols = said.get("symbols")
        if not isinstance(symbols, list):
            raise InvalidSchema(f"Enum has no symbols: {shown(said)}")
        known = set()
        for symbol in symbols:
            _check_name(symbol)
            if symbol in known:
                raise InvalidSchema(f"Duplicate enum symbol: {symbol}")
            known.add(symbol)
        default = _text(said, "default")
        if default is not None and default not in symbols:
            raise InvalidSchema(
                f"The Enum Default: {default} is not in the enum symbol set: {shown(symbols)}"
            )
        return self._put(
            Enum(
                "enum",
                _props(said, _ENUM_RESERVED),
                name=name,
                doc=_text(said, "doc"),
                aliases=_aliases(said, name),
                symbols=symbols,
                default=default,
            )
        )

    def _fixed(self, said: dict[str, Any], space: str | None) -> Node:
        name, size = _name(said, space), said.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_BYTES:
            raise InvalidSchema(f"Invalid or no size: {shown(said)}")
        return self._put(
            Fixed(
                "fixed",
                _props(said, _RESERVED),
                name=name,
                doc=_text(said, "doc"),
                aliases=_aliases(said, name),
                size=size,
            )
        )

    def _array(self, said: dict[str, Any], space: str | None) -> Node:
        if "items" not in said:
            raise InvalidSchema(f"Array has no items type: {shown(said)}")
        return Array("array", _props(said, _RESERVED), items=self._node(said["items"], space))

    def _map(self, said: dict[str, Any], space: str | None) -> Node:
        if "values" not in said:
            raise InvalidSchema(f"Map has no values type: {shown(said)}")
        return Map("map", _props(said, _RESERVED), values=self._node(said["values"], space))

    def _put(self, named: Named) -> Node:
        return _same(self._by_name.setdefault(named.name.full, named), named)


def _field(name: str, said: dict[str, Any], type_: Node) -> Field:
    _check_name(name)
    default = said.get("default", NO_DEFAULT)
    if type_.type in ("float", "double") and isinstance(default, str):
        default = _number(default, name)
    order = said.get("order", _ORDERS[0])
    if not isinstance(order, str) or order.lower() not in _ORDERS:
        raise InvalidSchema(f"the order of field {name} is not one of {', '.join(_ORDERS)}")
    aliases = list(dict.fromkeys(_alias_texts(said)))
    props = _props(said, _FIELD_RESERVED)
    return Field(name, type_, _text(said, "doc"), default, order.lower(), aliases, props)


def _same(known: Named, again: Named) -> Named:
    if not equal(known, again):
        raise InvalidSchema(f"Can't redefine: {again.full_name}")
    return known


def _check_branches(union: Union) -> None:
    names = set()
    for branch in union.branches:
        if isinstance(branch, Union):
            raise InvalidSchema("Nested union: a union is not directly in a union")
        if branch.full_name in names:
            raise InvalidSchema(f"Duplicate in union:{branch.full_name}")
        names.add(branch.full_name)


def _name(said: dict[str, Any], space: str | None) -> Name:
    own = _text(said, "namespace")
    name = name_of(_required(said, "name", "No name in schema"), space if own is None else own)
    _check_name(name.simple)
    if name.full in PRIMITIVES:
        raise InvalidSchema(f"Schemas may not be named after primitives: {name.full}")
    return name


def _check_name(name: Any) -> None:
    """Letters and digits of any script."""
    if not isinstance(name, str):
        raise InvalidSchema("Null name")
    if not name:
        raise InvalidSchema("Empty name")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidSchema(f"Illegal initial character: {shown(name)}")
    if not all(each.isalpha() or each.isdecimal() or each == "_" for each in name):
        raise InvalidSchema(f"Illegal character in: {shown(name)}")


def _number(text: str, field: str) -> float:
    """Java's Double.parseDouble takes spaces around it, and NaN and Infinity by these names only."""
    stripped = text.strip()
    unsigned = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    is_word = unsigned in ("NaN", "Infinity")
    plain = unsigned[:-1] if unsigned[-1:] in _SUFFIXES and not is_word else unsigned
    if not is_word and _DECIMAL.fullmatch(plain) is None:
        raise InvalidSchema(f"the default of field {field} is not a number: {shown(text)}")
    return -float(plain) if stripped.startswith("-") else float(plain)


def _props(said: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in reserved}


def _aliases(said: dict[str, Any], name: Name) -> list[Name]:
    return list(dict.fromkeys(name_of(each, name.space) for each in _alias_texts(said)))


def _alias_texts(said: dict[str, Any]) -> list[str]:
    aliases = said.get("aliases", [])
    if not isinstance(aliases, list):
        raise InvalidSchema(f"aliases not an array: {shown(said)}")
    for each in aliases:
        if not isinstance(each, str):
            raise InvalidSchema(f"alias not a string: {shown(each)}")
    return aliases


def _required(said: Any, key: str, error: str) -> str:
    text = _text(said, key) if isinstance(said, dict) else None
    if text is None:
        raise InvalidSchema(f"{error}: {shown(said)}")
    return text


def _text(said: dict[str, Any], key: str) -> str | None:
    value = said.get(key)
    return value if isinstance(value, str) else None
