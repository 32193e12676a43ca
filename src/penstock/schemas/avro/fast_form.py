"""Schemas in the form in which fastavro reads values as we want them.

A branch of a union becomes a record with one field, named as the branch: on the wire it is the same, and it is read as
{"branch": value}. Bytes and floats get a logical type of ours, by which fastavro calls us. Named types have names of ours:
fastavro knows those of ASCII letters only.
"""

from __future__ import annotations

from typing import Any, Final

import fastavro
import fastavro.read
from fastavro.schema import SchemaParseException, UnknownType

from penstock.schemas.avro.decoding import double, single
from penstock.schemas.avro.nodes import NO_DEFAULT, Array, Enum, Fixed, Map, Named, Node, Record, Union
from penstock.schemas.model import InvalidSchema

_OURS: Final = "penstock-json"


def _text(data: bytes, writer: object = None, reader: object = None) -> str:
    return data.decode("latin-1")


def _single(value: float, writer: object = None, reader: object = None) -> float | str:
    return single(value)


def _double(value: float, writer: object = None, reader: object = None) -> float | str:
    return double(value)


fastavro.read.LOGICAL_READERS.update(
    {f"bytes-{_OURS}": _text, f"fixed-{_OURS}": _text, f"float-{_OURS}": _single, f"double-{_OURS}": _double}
)


def for_reading(root: Node, *, is_plain: bool) -> Any | None:
    """None when fastavro is not to read it: see `decoding`, or it does not take its names."""
    try:
        return None if _is_unbounded(root) else fastavro.parse_schema(_Ours(is_plain).form(root))
    except (SchemaParseException, UnknownType, RecursionError):
        return None


def for_resolving(root: Node) -> Any:
    """With the schema's own names and defaults, for a writer and a reader. InvalidSchema when fastavro does not take them."""
    try:
        return fastavro.parse_schema(_Own().form(root))
    except (SchemaParseException, UnknownType, RecursionError) as error:
        raise InvalidSchema(f"fastavro does not take it: {error}") from None


def for_values(root: Node) -> Any | None:
    """For Python values: bytes are bytes, floats are floats, and a value of a union of several types is {"branch": value}; what
    may be null besides is plain. None as above."""
    try:
        return None if _is_unbounded(root) else fastavro.parse_schema(_Ours(False, is_json=False).form(root))
    except (SchemaParseException, UnknownType, RecursionError):
        return None


class _Ours:
    def __init__(self, is_plain: bool, *, is_json: bool = True) -> None:
        self._is_plain = is_plain
        self._is_json = is_json
        self._names: dict[int, str] = {}
        self._wrappers = 0

    def form(self, node: Node) -> Any:
        if isinstance(node, Named):
            return self._named(node)
        if isinstance(node, Union):
            if not self._is_json and sum(branch.type != "null" for branch in node.branches) < 2:
                return [self.form(branch) for branch in node.branches]
            return [self._branch(branch) for branch in node.branches]
        if isinstance(node, Array):
            return {"type": "array", "items": self.form(node.items)}
        if isinstance(node, Map):
            return {"type": "map", "values": self.form(node.values)}
        if self._is_json and node.type in ("bytes", "float", "double"):
            return {"type": node.type, "logicalType": _OURS}
        return node.type

    def _branch(self, node: Node) -> Any:
        if self._is_plain or node.type == "null":
            return self.form(node)
        self._wrappers += 1
        name = f"Branch{self._wrappers}"
        return {"type": "record", "name": name, "fields": [{"name": node.full_name, "type": self.form(node)}]}

    def _named(self, node: Named) -> Any:
        if id(node) in self._names:
            return self._names[id(node)]
        name = self._names[id(node)] = f"Type{len(self._names)}"
        if isinstance(node, Enum):
            return {"type": "enum", "name": name, "symbols": node.symbols}
        if isinstance(node, Fixed):
            fixed = {"type": "fixed", "name": name, "size": node.size}
            return {**fixed, "logicalType": _OURS} if self._is_json else fixed
        fields = node.fields.values() if isinstance(node, Record) else ()
        return {
            "type": "record",
            "name": name,
            "fields": [{"name": field.name, "type": self.form(field.type)} for field in fields],
        }


class _Own:
    def __init__(self) -> None:
        self._known: set[int] = set()

    def form(self, node: Node) -> Any:
        if isinstance(node, Named):
            return self._named(node)
        if isinstance(node, Union):
            return [self.form(branch) for branch in node.branches]
        if isinstance(node, Array):
            return {"type": "array", "items": self.form(node.items)}
        if isinstance(node, Map):
            return {"type": "map", "values": self.form(node.values)}
        return node.type

    def _named(self, node: Named) -> Any:
        if id(node) in self._known:
            return node.full_name
        self._known.add(id(node))
        form: dict[str, Any] = {
            "type": node.type,
            "name": node.name.simple,
            "namespace": node.name.space or "",
        }
        if node.aliases:
            form["aliases"] = [alias.full for alias in node.aliases]
        if isinstance(node, Enum):
            form["symbols"] = node.symbols
            if node.default is not None:
                form["default"] = node.default
        if isinstance(node, Fixed):
            form["size"] = node.size
        if isinstance(node, Record):
            form["fields"] = [
                {
                    "name": field.name,
                    "type": self.form(field.type),
                    **({"aliases": field.aliases} if field.aliases else {}),
                    **({} if field.default is NO_DEFAULT else {"default": field.default}),
                }
                for field in node.fields.values()
            ]
        return form


def _is_unbounded(root: Node) -> bool:
    """Whether a type contains itself, or an array has items that take no bytes."""
    inside: set[int] = set()
    takes_none: dict[int, bool] = {}

    def look(node: Node) -> bool:
        """True: this or something in it is unbounded."""
        if id(node) in inside:
            return True
        if id(node) in takes_none:
            return False
        inside.add(id(node))
        if any(look(child) for child in node.children()):
            return True
        inside.discard(id(node))
        none = [takes_none[id(child)] for child in node.children()]
        takes_none[id(node)] = (
            node.type == "null"
            or (isinstance(node, Fixed) and node.size == 0)
            or (isinstance(node, Record) and all(none))
        )
        return isinstance(node, Array) and any(none)

    return look(root)
