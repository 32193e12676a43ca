"""What is asked of a schema that is registered for the first time: names of ASCII letters, and defaults that fit their fields.

A default fits a union when it fits one of the branches, as in Apache Avro since 1.12.
"""

from __future__ import annotations

import re
from typing import Any, Final

from penstock.schemas.avro.json_text import shown
from penstock.schemas.avro.nodes import Array, Enum, Map, Name, Named, Node, Record, Union, visited
from penstock.schemas.avro.text import text_of
from penstock.schemas.model import InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_CHARACTERS: Final = 200
_INT: Final = range(-(1 << 31), 1 << 31)
_LONG: Final = range(-(1 << 63), 1 << 63)


def check_new(root: Node) -> None:
    """InvalidSchema."""
    try:
        _check(root)
    except RecursionError:
        raise InvalidSchema("its defaults are nested too deeply") from None


def _check(root: Node) -> None:
    defaults = _Defaults()
    for node in visited(root):
        if isinstance(node, Named):
            _check_names(node)
        if isinstance(node, Enum):
            for symbol in node.symbols:
                _check_name(symbol)
        if isinstance(node, Record):
            for field in node.fields.values():
                _check_name(field.name)
                if field.has_default and not defaults.fit(field.default, field.type):
                    type_text = text_of(field.type)
                    if len(type_text) > _SHOWN_CHARACTERS:
                        type_text = type_text[:_SHOWN_CHARACTERS] + "…"
                    raise InvalidSchema(
                        f"Invalid default for field {field.name}: {shown(field.default)} not a {type_text}"
                    )


def _check_names(named: Named) -> None:
    for part in (named.name.space or "").split(".") if named.name.space else ():
        _check_name(part, "Namespace part")
    names: list[Name] = [named.name, *named.aliases]
    for name in names:
        _check_name(name.simple)


def _check_name(name: str, what: str = "Name") -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidSchema(f'{what} "{name}" is invalid: letters A to Z, digits and _, no digit first')


class _Defaults:
    """Each pair of a value and a type is looked at once, so records that contain themselves end."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def fit(self, value: Any, node: Node) -> bool:
        key = (id(value), id(node))
        if key not in self._known:
            self._known[key] = False  # a default that needs itself is none
            self._known[key] = self._fits(value, node)
        return self._known[key]

    def _fits(self, value: Any, node: Node) -> bool:
        if isinstance(node, Union):
            return any(self.fit(value, branch) for branch in node.branches)
        if isinstance(node, Array):
            return isinstance(value, list) and all(self.fit(each, node.items) for each in value)
        if isinstance(node, Map):
            return isinstance(value, dict) and all(self.fit(each, node.values) for each in value.values())
        if isinstance(node, Record):
            return isinstance(value, dict) and all(
                self.fit(value.get(field.name, field.default), field.type) for field in node.fields.values()
            )
        return _fits_plainly(value, node.type)


def _fits_plainly(value: Any, type_: str) -> bool:
    if type_ in ("string", "bytes", "enum", "fixed"):
        return isinstance(value, str)
    if type_ == "null":
        return value is None
    if type_ == "boolean" or isinstance(value, bool):
        return type_ == "boolean" and isinstance(value, bool)
    if type_ in ("int", "long"):
        return isinstance(value, int) and value in (_INT if type_ == "int" else _LONG)
    return isinstance(value, (int, float))
