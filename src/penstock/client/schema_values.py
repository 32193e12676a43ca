"""Values of records by the schemas of a registry: read with the schema that a value names, written with one that is chosen.

    ValueReader(registry).read(value)             → the value in JSON's form, and the schema that it was written with
    ValueWriter(registry, topic, ...).write(value) → the bytes of a record's value or key

Calls block: a service with an event loop makes them in a thread. Both may be shared between threads. What the registry says is
kept, within bounds; a refusal is kept for a while too, so that not each value of an unknown schema asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.client.errors import BadOption
from penstock.client.kept import Kept
from penstock.client.schema_registry import RegisteredSchema, RegistryRefused, SchemaRegistry
from penstock.schemas.framing import framed, unframed
from penstock.schemas.model import AVRO, InvalidSchema, Schema, SchemaReference
from penstock.schemas.parsing import parse
from penstock.schemas.subject_names import TOPIC_NAME, strategy_of, subject_of
from penstock.schemas.values import ValueCodec, codec_of

MAX_CODECS: Final = 1_000
REFUSAL_KEPT_S: Final = 10.0


class ReadSchema(NamedTuple):
    """A schema with all that is needed to read and write values."""

    id: int
    """0 when a value names its schema by GUID, and the registry does not say the id."""
    schema: Schema
    codec: ValueCodec


class ReadValue(NamedTuple):
    value: Any
    """In the form of the kind's JSON."""
    schema: ReadSchema


class ValueReader:
    """`plain`, `original_names`: see `schemas.values.codec_of`."""

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        plain: bool = False,
        original_names: bool = True,
        at_most: int = MAX_CODECS,
    ) -> None:
        self._registry = registry
        self._options = {"plain": plain, "original_names": original_names}
        self._schemas = Kept[ReadSchema](at_most=at_most)
        self._answers = Kept[ReadSchema | RegistryRefused | InvalidSchema](REFUSAL_KEPT_S, at_most)

    def read(self, value: bytes | memoryview) -> ReadValue:
        """InvalidValue when it does not name a schema, or is not what its schema reads. RegistryRefused, InvalidSchema,
        Unreachable."""
        name, data = unframed(value)
        schema = self.schema(name)
        return ReadValue(schema.codec.decode(data), schema)

    def schema(self, name: int | UUID) -> ReadSchema:
        """By id or GUID."""
        return self._schemas.get(name, lambda: self._asked(name))

    def _asked(self, name: int | UUID) -> ReadSchema:
        answer = self._answers.get(name, lambda: self._answer(name))
        if isinstance(answer, ReadSchema):
            return answer
        raise answer.with_traceback(None)

    def _answer(self, name: int | UUID) -> ReadSchema | RegistryRefused | InvalidSchema:
        registry = self._registry
        try:
            registered = registry.by_guid(name) if isinstance(name, UUID) else registry.by_id(name)
            return _with_codec(registry, registered, **self._options)
        except (RegistryRefused, InvalidSchema) as refusal:
            return refusal


@dataclass(frozen=True, kw_only=True)
class SchemaChoice:
    """With which schema values are written: one of a text, an id and a version of the subject, or else its latest version."""

    kind: str = AVRO
    """Of the text."""
    text: str | None = None
    references: Sequence[SchemaReference] = ()
    id: int | None = None
    version: int | None = None
    subject: str | None = None
    """By the strategy when it is not said."""
    strategy: str = TOPIC_NAME
    auto_register: bool = True
    """A text that the subject does not have is registered; otherwise it must be there."""
    normalize: bool = False
    message: str | None = None
    """The full name of Protobuf's message; the first one when it is not said."""

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.text, self.id, self.version)) > 1:
            raise BadOption("a schema is chosen by its text, its id or its version, by one of them only")
        strategy_of(self.strategy)


LATEST: Final = SchemaChoice()


class ValueWriter:
    """Of the values or the keys of one topic. The registry is asked when the first value comes. ValueError and BadOption when the
    choice is none."""

    def __init__(
        self,
        registry: SchemaRegistry,
        topic: str,
        choice: SchemaChoice = LATEST,
        *,
        is_key: bool = False,
    ) -> None:
        self._registry = registry
        self._topic = topic
        self._choice = choice
        self._is_key = is_key
        self._parsed = Kept[Schema](at_most=1)
        self._schemas = Kept[ReadSchema](at_most=2)  # the latest version, and the one before it for a moment

    def write(self, value: Any) -> bytes:
        """InvalidValue when it does not fit. RegistryRefused, InvalidSchema, Unreachable."""
        schema = self.schema()
        return framed(schema.id, schema.codec.encode(value))

    def schema(self) -> ReadSchema:
        """The one that is chosen. The latest version is asked for again from time to time."""
        registry, choice = self._registry, self._choice
        if choice.text is not None:
            schema = self._parsed.get((), self._parse)
            return self._schemas.get((), lambda: self._of_text(schema))
        if choice.id is not None:
            registered = registry.by_id(choice.id, choice.subject)
        elif choice.version is not None:
            registered = registry.version(self._subject(), choice.version)
        else:
            registered = registry.latest(self._subject())
        return self._schemas.get(registered.id, lambda: self._with_message(registered))

    def _parse(self) -> Schema:
        choice = self._choice
        texts = self._registry.texts_of(choice.references)
        return parse(choice.kind, choice.text or "", choice.references, texts)

    def _of_text(self, schema: Schema) -> ReadSchema:
        choice = self._choice
        ask = self._registry.register if choice.auto_register else self._registry.lookup
        schema_id = ask(
            self._subject(schema), schema.text, choice.kind, schema.references, normalize=choice.normalize
        )
        return ReadSchema(schema_id, schema, codec_of(schema, message=choice.message))

    def _with_message(self, registered: RegisteredSchema) -> ReadSchema:
        return _with_codec(self._registry, registered, message=self._choice.message)

    def _subject(self, schema: Schema | None = None) -> str:
        return self._choice.subject or subject_of(
            self._topic,
            is_key=self._is_key,
            strategy=strategy_of(self._choice.strategy),
            full_name=lambda: self._choice.message or (schema.full_name if schema else None),
        )


def _with_codec(registry: SchemaRegistry, registered: RegisteredSchema, **options: Any) -> ReadSchema:
    texts = registry.texts_of(registered.references)
    schema = parse(registered.kind, registered.text, registered.references, texts)
    return ReadSchema(registered.id, schema, codec_of(schema, **options))
