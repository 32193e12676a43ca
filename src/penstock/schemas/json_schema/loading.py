"""Schemas become nodes, one at a time, when they are asked for.

Which keywords make one node depends on the draft: up to draft 7 a `$ref` has no neighbours, `items` may be a list, and an empty
`properties` says that it is about objects; later ones have `prefixItems`, `dependentRequired`, `unevaluatedProperties`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from penstock.schemas.json_schema import drafts
from penstock.schemas.json_schema.documents import Documents, Place
from penstock.schemas.json_schema.json_text import key_of
from penstock.schemas.json_schema.nodes import (
    ALL,
    ANY,
    ONE,
    Anything,
    Array,
    Boolean,
    Child,
    Combined,
    Conditional,
    Const,
    Enum,
    Node,
    Not,
    Nothing,
    Null,
    Number,
    Object,
    PatternProperty,
    Reference,
    String,
)

NUMBER_KEYWORDS: Final = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
)
STRING_KEYWORDS: Final = frozenset(("minLength", "maxLength", "pattern"))
CLASSIC_OBJECT_KEYWORDS: Final = frozenset((
    "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties", "additionalProperties",
))  # fmt: skip
OBJECT_KEYWORDS: Final = CLASSIC_OBJECT_KEYWORDS | {
    "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties"
}  # fmt: skip
CLASSIC_ARRAY_KEYWORDS: Final = frozenset(("items", "additionalItems", "minItems", "maxItems", "uniqueItems"))
ARRAY_KEYWORDS: Final = CLASSIC_ARRAY_KEYWORDS | {"contains", "prefixItems", "unevaluatedItems"}
CONDITIONAL_KEYWORDS: Final = frozenset(("if", "then", "else"))


class Loader:
    """Nodes of one schema and of those that it refers to."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._nodes: dict[int, Node] = {}
        self._true, self._false = Anything(), Nothing()
        self._keys: dict[int, str] = {}

    @property
    def root(self) -> Node:
        place = self._documents.root
        return self.node_at(self._documents.place_of(place.value, place))

    def node_at(self, place: Place) -> Node:
        if not isinstance(place.value, dict):
            return self._false if place.value is False else self._true
        known = self._nodes.get(id(place.value))
        # Of two threads that make it, both get the first one's: nodes are known by identity.
        return known or self._nodes.setdefault(id(place.value), _Reading(self, place).node())

    def child(self, value: Any, parent: Place) -> Child:
        return _Lazy(self, self._documents.place_of(value, parent))

    def target(self, place: Place, reference: str) -> Child | None:
        target = self._documents.target_of(place, reference)
        return None if target is None else _Lazy(self, target)


class _Lazy:
    __slots__ = ("_loader", "_place")

    def __init__(self, loader: Loader, place: Place) -> None:
        self._loader = loader
        self._place = place

    @property
    def node(self) -> Node:
        return self._loader.node_at(self._place)

    @property
    def has_default(self) -> bool:
        value = self._place.value
        return isinstance(value, dict) and "default" in value

    @property
    def key(self) -> str:
        return key_of(self._place.value)


class _Made:
    """A part that has no text of its own."""

    __slots__ = ("key", "node")

    def __init__(self, node: Node, key: str) -> None:
        self.node = node
        self.key = key

    @property
    def has_default(self) -> bool:
        return False


class _Reading:
    """Of one schema's keywords."""

    def __init__(self, loader: Loader, place: Place) -> None:
        self.loader = loader
        self.place = place
        self.schema: dict[str, Any] = place.value
        self.draft = place.draft
        self.is_modern = place.draft.is_modern
        # {"properties": {}} says nothing in the form that Confluent gives to later drafts.
        self.here = {key for key, value in self.schema.items() if not self.is_modern or value != {} or key not in
                     ("properties", "patternProperties")}  # fmt: skip

    def node(self) -> Node:
        groups = self._references()
        if self.is_modern or not groups:
            groups += self._groups()
        if len(groups) == 1:
            node = groups[0]
        elif groups:
            node = Combined(
                criterion=ALL, parts=tuple(_Made(group, f"{index}") for index, group in enumerate(groups))
            )
        else:
            node = Anything()
        self._annotate(node)
        return node

    def _annotate(self, node: Node) -> None:
        schema = self.schema
        node.title = _text(schema.get("title"))
        node.description = _text(schema.get("description"))
        if not self.is_modern:
            node.id = _text(schema.get(self.draft.id_keyword))
        if "default" in schema:
            node.default = key_of(schema["default"])
        node.connect_type = schema.get("connect.type")

    def _references(self) -> list[Node]:
        found: list[Node] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef") if self.is_modern else ("$ref",):
            reference = self.schema.get(keyword)
            if isinstance(reference, str):
                found.append(Reference(target=self.loader.target(self.place, reference)))
        return found

    def _groups(self) -> list[Node]:
        schema, here = self.schema, self.here
        found: list[Node] = []
        if "enum" in here:
            found.append(Enum(values=frozenset(key_of(value) for value in schema["enum"])))
        for criterion in (ALL, ANY, ONE):
            if criterion in here:
                parts = tuple(self._child(each) for each in schema[criterion])
                found.append(Combined(criterion=criterion, parts=parts))
        if "not" in here:
            found.append(Not(child=self._child(schema["not"])))
        if "const" in here and self.draft.number != 4:
            found.append(Const(value=key_of(schema["const"])))
        types = schema.get("type")
        told = types if isinstance(types, list) else [types] if isinstance(types, str) else []
        if isinstance(types, list):
            parts = tuple(_Made(self._of_type(each), each) for each in types)
            found.append(Combined(criterion=ANY, parts=parts))
        else:
            found += (self._of_type(each) for each in told)
        if "array" not in told and here & self._array_keywords():
            found.append(self._array())
        if "object" not in told and here & self._object_keywords():
            found.append(self._object())
        if "number" not in told and "integer" not in told and here & NUMBER_KEYWORDS:
            found.append(self._number())
        if "string" not in told and (here & STRING_KEYWORDS or (not self.is_modern and "format" in here)):
            found.append(self._string())
        if self.draft.number >= 7 and here & CONDITIONAL_KEYWORDS:
            found.append(Conditional())
        return found

    def _of_type(self, name: str) -> Node:
        match name:
            case "string":
                return self._string()
            case "number" | "integer":
                return self._number(is_integer=name == "integer")
            case "boolean":
                return Boolean()
            case "null":
                return Null()
            case "array":
                return self._array()
        return self._object()

    def _array_keywords(self) -> frozenset[str]:
        if self.is_modern:
            return ARRAY_KEYWORDS
        return CLASSIC_ARRAY_KEYWORDS | {"contains"} if self.draft.number > 4 else CLASSIC_ARRAY_KEYWORDS

    def _object_keywords(self) -> frozenset[str]:
        if self.is_modern:
            return OBJECT_KEYWORDS
        if self.draft.number == 4:
            return CLASSIC_OBJECT_KEYWORDS
        return CLASSIC_OBJECT_KEYWORDS | {"propertyNames"}

    def _string(self) -> String:
        pattern = self.schema.get("pattern")
        return String(
            max_length=self._whole("maxLength"), min_length=self._whole("minLength"), pattern=_text(pattern)
        )

    def _number(self, *, is_integer: bool = False) -> Number:
        return Number(
            is_integer=is_integer,
            maximum=self._decimal("maximum"),
            minimum=self._decimal("minimum"),
            exclusive_maximum=self._decimal("exclusiveMaximum"),
            exclusive_minimum=self._decimal("exclusiveMinimum"),
            multiple_of=self._decimal("multipleOf"),
        )

    def _object(self) -> Object:
        schema = self.schema
        additional = schema.get("additionalProperties")
        node = Object(
            properties={name: self._child(each) for name, each in schema.get("properties", {}).items()},
            pattern_properties=tuple(
                PatternProperty(pattern, _matcher(pattern), self._child(each))
                for pattern, each in schema.get("patternProperties", {}).items()
            ),
            is_closed=additional is False,
            additional=self._child(additional) if isinstance(additional, dict) else None,
            required=frozenset(schema.get("required", ())),
            max_properties=self._whole("maxProperties"),
            min_properties=self._whole("minProperties"),
        )
        if self.is_modern and "unevaluatedProperties" in schema:
            node.unevaluated = self._child(schema["unevaluatedProperties"])
        self._dependencies(node)
        return node

    def _dependencies(self, node: Object) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            if keyword != "dependencies" and not self.is_modern:
                continue
            for name, each in self.schema.get(keyword, {}).items():
                if isinstance(each, list):
                    node.property_dependencies[name] = frozenset(each)
                else:
                    node.schema_dependencies[name] = self._child(each)

    def _array(self) -> Array:
        schema = self.schema
        is_latest = self.draft.number == drafts.DRAFT_2020_12.number
        items, leading = schema.get("items"), schema.get("prefixItems") if is_latest else None
        additional = None if is_latest else schema.get("additionalItems")
        if isinstance(items, list):
            leading = items
        elif leading or (self.is_modern and isinstance(items, bool)):
            items, additional = None, items  # what items is here, additionalItems was before
        every = self._child(items) if isinstance(items, (dict, bool)) else None
        node = Array(
            every=every,
            items=tuple(self._child(each) for each in leading or ()),
            is_closed=additional is False and every is None,
            additional=self._child(additional) if isinstance(additional, dict) else None,
            max_items=self._whole("maxItems"),
            min_items=self._whole("minItems"),
            max_contains=self._whole("maxContains"),
            min_contains=self._whole("minContains"),
            is_unique=schema.get("uniqueItems") is True,
        )
        if self.is_modern:
            if "unevaluatedItems" in schema:
                node.unevaluated = self._child(schema["unevaluatedItems"])
            if "contains" in schema and node.min_contains is None:
                node.min_contains = 1
        return node

    def _child(self, value: Any) -> Child:
        return self.loader.child(value, self.place)

    def _whole(self, keyword: str) -> int | None:
        value = self.schema.get(keyword)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _decimal(self, keyword: str) -> Decimal | None:
        value = self.schema.get(keyword)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None  # draft 4's exclusiveMaximum is a boolean, which Confluent does not compare
        return Decimal(repr(value))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _matcher(pattern: str) -> Any:
    return drafts.DRAFT_7.validator({"pattern": pattern}, pattern_options=drafts.PATTERNS)
