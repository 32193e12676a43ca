"""A schema and all that it refers to as one schema, for the validator.

jsonschema_rs takes time by the third power of the number of documents, where each refers to others, but in one document it is
linear. So every place that a `$ref` leads to becomes a definition of one document, and every `$ref` leads there. Each schema is
copied once: where a copy would contain such a place, it has a `$ref` in its stead.

What finds its target only with the value (`$dynamicRef`), and documents of several drafts, cannot be put together so.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.schemas.json_schema import drafts
from penstock.schemas.json_schema.documents import REFERRING, Documents, Place
from penstock.schemas.json_schema.uris import joined

_DYNAMIC: Final = frozenset(REFERRING) - {"$ref"}
_LEFT_OUT: Final = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$schema", "$defs", "definitions"))
_HOME: Final = "#/definitions/"


def can_be_bundled(documents: Documents) -> bool:
    draft = documents.root.draft
    return all(place.draft == draft and _DYNAMIC.isdisjoint(place.value) for place in documents.places)


def bundled(documents: Documents) -> dict[str, Any]:
    """RecursionError when it is nested very deeply."""
    return _Copying(documents).whole()


class _Copying:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._names: dict[int, str] = {}
        targets = [place for place in documents.targets if isinstance(place.value, dict)]
        for place in targets:
            self._names.setdefault(id(place.value), f"t{len(self._names)}")
        self._targets = targets

    def whole(self) -> dict[str, Any]:
        definitions = {self._names[id(place.value)]: self._inside(place) for place in self._targets}
        root = self._documents.root
        root = self._documents.place_of(root.value, root)
        return {**self._copy(root), "definitions": {**definitions, "true": {}, "false": {"not": {}}}}

    def _copy(self, place: Place) -> Any:
        if not isinstance(place.value, dict):
            return place.value
        name = self._names.get(id(place.value))
        return {"$ref": f"{_HOME}{name}"} if name is not None else self._inside(place)

    def _inside(self, place: Place) -> dict[str, Any]:
        schema: dict[str, Any] = place.value
        reference = schema.get("$ref")
        copy: dict[str, Any] = {}
        if isinstance(reference, str):
            copy["$ref"] = self._led(place, reference)
            if not place.draft.is_modern:
                return copy
        for keyword, value in schema.items():
            if keyword not in _LEFT_OUT and keyword != "$ref":
                copy[keyword] = self._value(keyword, value, place)
        return copy

    def _led(self, place: Place, reference: str) -> str:
        target = self._documents.target_of(place, reference)
        if target is None:
            return joined(place.base, reference)  # a metaschema
        if isinstance(target.value, dict):
            return f"{_HOME}{self._names[id(target.value)]}"
        return f"{_HOME}{'true' if target.value else 'false'}"

    def _value(self, keyword: str, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            if keyword in drafts.MAPS:
                return {name: self._child(each, place) for name, each in value.items()}
            return self._child(value, place) if keyword in drafts.SCHEMAS else value
        if isinstance(value, list) and keyword in drafts.LISTS:
            return [self._child(each, place) for each in value]
        return value

    def _child(self, value: Any, place: Place) -> Any:
        return self._copy(self._documents.place_of(value, place)) if isinstance(value, dict) else value
