"""A schema and those that it refers to: where each `$ref` leads.

    Documents(value, references)
      walk     every schema of the document: its address, its `$id`, its anchors, its `$ref`s
      lead     every `$ref` to the place that it names, in this document or one that is referred to; that one is walked then

Nothing is fetched: an address that is neither in a document nor the name of a reference is InvalidSchema, with the place of the
`$ref`. A reference's text is read only when a `$ref` leads to it.

Places are known by the identity of their JSON object, which lives as long as its document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from penstock.schemas.json_schema import drafts, json_text
from penstock.schemas.json_schema.drafts import Draft
from penstock.schemas.json_schema.uris import HOME, joined, parted, pointer_tokens
from penstock.schemas.model import InvalidSchema, Referred

MAX_REFERENCES: Final = 10_000
"""Different places that `$ref`s lead to: compiling takes time by the square of their number."""
MAX_DOCUMENTS: Final = 2_000
"""Texts that are read because a `$ref` leads to them, directly or by others."""
MAX_REFERRED_CHARACTERS: Final = 16 << 20
"""Of all texts that are referred to."""
_BRIDGE: Final = "#/$defs/"
REFERRING: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class Place(NamedTuple):
    """Of a schema in a document."""

    value: Any
    base: str
    """What a reference in it is completed by."""
    draft: Draft
    pointer: str
    """As it is told: #/properties/a."""


class Documents:
    """Of one schema. It does not change once it is made."""

    def __init__(self, root: Any, text: str, references: Mapping[str, Referred]) -> None:
        self._references = references
        self._bridged = _BRIDGE in text
        self._addresses: dict[str, Place] = {}
        self._anchors: dict[tuple[str, str], Place] = {}
        self._places: dict[int, Place] = {}
        self._targets: dict[tuple[str, str], Place] = {}
        self._kept: list[Any] = []  # what the identities in _places belong to
        self._referred_characters = self.read_documents = 0
        self._waiting: list[tuple[Place, str]] = []
        self.root = Place(self._with_both_definitions(root), HOME, drafts.draft_of(root), "#")
        self._addresses[HOME.rstrip("/")] = self._addresses[HOME] = self.root
        self._walk(self.root)
        self.base = self._places[id(self.root.value)].base if isinstance(root, dict) else HOME
        self._names = {joined(base, name): name for base in (HOME, self.base) for name in references}
        while self._waiting:
            place, reference = self._waiting.pop()
            self._lead(place, reference)

    @property
    def places(self) -> Iterable[Place]:
        """Of all schemas that were found."""
        return self._places.values()

    @property
    def targets(self) -> Iterable[Place]:
        """Of all `$ref`s."""
        return self._targets.values()

    def place_of(self, value: Any, parent: Place) -> Place:
        """Of a schema in a document, below `parent`."""
        return self._places.get(id(value)) or Place(value, parent.base, parent.draft, parent.pointer)

    def target_of(self, place: Place, reference: str) -> Place | None:
        """Where a `$ref` leads. None: to a metaschema, or it is a dynamic one that leads nowhere yet."""
        return self._targets.get((place.base, reference))

    def retrieve(self, address: str) -> Any:
        """For the validator: what is at an address. It asks for nothing else than what `_lead` has found."""
        place = self._addresses.get(parted(address)[0])
        if place is None:
            raise LookupError("nothing is fetched")
        return place.value

    def _walk(self, start: Place) -> None:
        stack = [start]
        while stack:
            place = stack.pop()
            schema = place.value
            if not isinstance(schema, dict) or id(schema) in self._places:
                continue
            place = self._named(place)
            self._places[id(schema)] = place
            self._kept.append(schema)
            for keyword in REFERRING:
                reference = schema.get(keyword)
                if isinstance(reference, str):
                    self._waiting.append((place, reference))
            stack.extend(_children(place))

    def _named(self, place: Place) -> Place:
        """With the address that its `$id` gives it; anchors are noted."""
        schema, draft = place.value, place.draft
        if not draft.is_modern and isinstance(schema.get("$ref"), str):
            return place
        identity = schema.get(draft.id_keyword)
        base = place.base
        if isinstance(identity, str) and identity:
            whole = _completed(place, base, identity)
            address, fragment = parted(whole)
            if identity.startswith("#"):
                self._anchors.setdefault((parted(base)[0], fragment), place)
            else:
                place = place._replace(base=address)
                self._addresses.setdefault(address, place)
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if draft.is_modern and isinstance(anchor, str):
                self._anchors.setdefault((parted(place.base)[0], anchor), place)
        return place

    def _lead(self, place: Place, reference: str) -> None:
        key = (place.base, reference)
        if key in self._targets:
            return
        whole = _completed(place, place.base, reference)
        address, fragment = parted(whole)
        document = self._document(place, address, reference)
        if document is None:
            if drafts.is_metaschema(address):
                return
            raise InvalidSchema(
                f"{place.pointer}: the $ref '{reference}' leads to nothing: no reference has this name, and nothing is fetched"
            )
        target = self._inside(document, address, fragment)
        if target is None:
            if reference != place.value.get("$ref"):
                return  # a dynamic one: what it leads to is known when a value is looked at
            raise InvalidSchema(f"{place.pointer}: the $ref '{reference}' leads to nothing")
        if len(self._targets) >= MAX_REFERENCES:
            raise InvalidSchema(f"its $refs lead to more than {MAX_REFERENCES:,} places")
        self._targets[key] = target
        self._walk(target)

    def _document(self, place: Place, address: str, reference: str) -> Place | None:
        known = self._addresses.get(address)
        if known is not None:
            return known
        name = self._name_of(address, parted(reference)[0])
        if name is None:
            return None
        document = self._addresses.get(f"name:{name}") or self._read(place, name, address)
        self._addresses[address] = document
        return document

    def _name_of(self, address: str, plain: str) -> str | None:
        for name in (plain, address, plain.removeprefix("./")):
            if name in self._references:
                return name
        return self._names.get(address)

    def _read(self, place: Place, name: str, address: str) -> Place:
        text = self._references[name].text
        self.read_documents += 1
        if self.read_documents > MAX_DOCUMENTS:
            raise InvalidSchema(
                f"it refers to more than {MAX_DOCUMENTS:,} other schemas, directly or by others"
            )
        self._referred_characters += len(text)
        if self._referred_characters > MAX_REFERRED_CHARACTERS:
            raise InvalidSchema(
                f"the schemas that it refers to have more than {MAX_REFERRED_CHARACTERS:,} characters"
            )
        try:
            value = json_text.read(text).value
        except InvalidSchema as error:
            raise InvalidSchema(f"{place.pointer}: the reference '{name}': {error}") from None
        self._bridged = self._bridged or _BRIDGE in self._references[name].text
        draft = drafts.draft_of(value, self.root.draft)
        document = Place(self._with_both_definitions(value), address, draft, f"{name}#")
        self._addresses[f"name:{name}"] = self._addresses[address] = document
        self._kept.append(document.value)
        self._walk(document)
        return document

    def _with_both_definitions(self, schema: Any) -> Any:
        """Confluent's registry finds `#/$defs/X` under `definitions` too."""
        if not self._bridged or not isinstance(schema, dict):
            return schema
        old, new = schema.get("definitions"), schema.get("$defs", {})
        if not isinstance(old, dict) or not isinstance(new, dict) or old.keys() <= new.keys():
            return schema
        return {**schema, "$defs": {**old, **new}}

    def _inside(self, document: Place, address: str, fragment: str) -> Place | None:
        here: Place = self._places.get(id(document.value), document)
        if not fragment:
            return here
        if not fragment.startswith("/"):
            return self._anchors.get((address, fragment)) or self._anchors.get(
                (parted(here.base)[0], fragment)
            )
        value = here.value
        for token in pointer_tokens(fragment):
            if isinstance(value, dict) and token in value:
                value = value[token]
            elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
                value = value[int(token)]
            else:
                return None
            known = self._places.get(id(value)) if isinstance(value, dict) else None
            here = known or Place(value, here.base, here.draft, f"{here.pointer}/{token}")
        return here if isinstance(value, (dict, bool)) else None


def _children(place: Place) -> Iterator[Place]:
    schema, base, draft = place.value, place.base, place.draft
    is_alone = not draft.is_modern and isinstance(schema.get("$ref"), str)
    for keyword, inner in schema.items():
        if is_alone and keyword not in ("definitions", "$defs"):
            continue  # neighbours of a $ref say nothing up to draft 7
        if isinstance(inner, dict):
            if keyword in drafts.MAPS:
                for name, each in inner.items():
                    if isinstance(each, dict):
                        yield Place(each, base, draft, f"{place.pointer}/{keyword}/{name}")
            elif keyword in drafts.SCHEMAS:
                yield Place(inner, base, draft, f"{place.pointer}/{keyword}")
        elif isinstance(inner, list) and keyword in drafts.LISTS:
            for index, each in enumerate(inner):
                yield Place(each, base, draft, f"{place.pointer}/{keyword}/{index}")


def _completed(place: Place, base: str, reference: str) -> str:
    try:
        return joined(base, reference)
    except ValueError as error:
        raise InvalidSchema(f"{place.pointer}: '{reference}' is no URI: {error}") from None
