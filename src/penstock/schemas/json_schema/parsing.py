"""A text becomes a JSON Schema.

    read     JSON, and its canonical text (json_text)
    lead     every `$ref` to its place (documents)
    compile  by jsonschema_rs: checks it against its draft's metaschema, and its regular expressions

What a schema says is loaded when it is compared, a node at a time (loading).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonschema_rs

from penstock.schemas.json_schema import compatibility, differences, json_text
from penstock.schemas.json_schema.bundle import bundled, can_be_bundled
from penstock.schemas.json_schema.documents import Documents
from penstock.schemas.json_schema.drafts import PATTERNS
from penstock.schemas.json_schema.loading import Loader
from penstock.schemas.json_schema.uris import HOME
from penstock.schemas.model import JSON, Incompatibility, InvalidSchema, Referred, Schema, SchemaReference

MAX_ERROR_CHARACTERS: Final = 300
MAX_SEPARATE_DOCUMENTS: Final = 50
"""That a validator is given one by one: it takes time by the third power of their number."""


def parse(text: str, references: Sequence[SchemaReference], texts: Mapping[str, Referred]) -> JsonSchema:
    value, canonical = json_text.read(text)
    if not isinstance(value, (dict, bool)):
        raise InvalidSchema("a JSON Schema is an object, true or false")
    documents = Documents(value, text, texts)
    compiled(documents)
    return JsonSchema(canonical, tuple(references), texts, documents)


def compiled(documents: Documents) -> Any:
    """A validator. InvalidSchema when it is none by its draft."""
    draft, schema = documents.root.draft, documents.root.value
    try:
        if documents.read_documents and can_be_bundled(documents):
            jsonschema_rs.meta.validate(
                {**schema, "$schema": draft.uri}
            )  # a bundle has only what is referred to
            schema = bundled(documents)
        elif documents.read_documents > MAX_SEPARATE_DOCUMENTS:
            raise InvalidSchema(
                f"schemas with $dynamicRef or of several drafts refer to at most {MAX_SEPARATE_DOCUMENTS} others"
            )
        return draft.validator(schema, base_uri=HOME, retriever=documents.retrieve, pattern_options=PATTERNS)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    except InvalidSchema:  # a ValueError, too
        raise
    except jsonschema_rs.ValidationError as error:
        place = "/".join(("#", *map(str, error.instance_path)))
        message = error.message
        if len(message) > MAX_ERROR_CHARACTERS:
            message = f"{message[: MAX_ERROR_CHARACTERS // 2]} … {message[-MAX_ERROR_CHARACTERS // 2 :]}"
        raise InvalidSchema(f"{place}: {' '.join(message.split())}") from None
    except ValueError as error:
        reason = "it is nested too deeply" if "ecursion" in str(error) else " ".join(str(error).split())
        raise InvalidSchema(reason) from None


class JsonSchema:
    kind: str = JSON

    def __init__(
        self,
        text: str,
        references: tuple[SchemaReference, ...],
        texts: Mapping[str, Referred],
        documents: Documents,
    ) -> None:
        self.text = text
        self.references = references
        self.documents = documents
        self._texts = texts
        self._loader = Loader(documents)

    @property
    def full_name(self) -> str | None:
        root = self.documents.root.value
        title = root.get("title") if isinstance(root, dict) else None
        return title if isinstance(title, str) else None

    def normalized(self) -> JsonSchema:
        """Keys in order; references in order, each once."""
        text = json_text.with_sorted_keys(self.text)
        references = tuple(
            sorted(dict.fromkeys(self.references), key=lambda each: (each.subject, each.version))
        )
        return JsonSchema(text, references, self._texts, self.documents)

    def formatted(self, form: str) -> str:
        """There is no other form, as in Confluent's registry."""
        return self.text

    def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
        if not isinstance(older, JsonSchema):
            raise TypeError(f"{older.kind} is not compared with JSON")
        found = compatibility.compare(older._loader.root, self._loader.root, policy)
        return [differences.told(each) for each in found.broken()]
