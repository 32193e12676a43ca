"""What the three kinds of schemas have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = (JSON, PROTOBUF, AVRO)

MAX_TEXT_CHARACTERS: Final = 4 << 20
"""Of one schema; those that it refers to have the same bound each."""
MAX_DEPTH: Final = 200
"""How deeply types may be nested in one another, in one schema or by way of references."""


class SchemaReference(NamedTuple):
    name: str
    """How the schema names it: a full name in Avro, a URI in JSON Schema, the path of an import in Protobuf."""
    subject: str
    version: int


class Referred(NamedTuple):
    """A schema that is referred to, as it is registered."""

    text: str
    references: tuple[SchemaReference, ...] = ()


class InvalidSchema(ValueError):
    """It is no schema of its kind, or refers to something that is not there. The message has the reason in one line."""


class InvalidValue(ValueError):
    """A value that does not fit its schema, or bytes that the schema cannot read. The message has the place and the reason."""


class Incompatibility(NamedTuple):
    """One reason why a new schema cannot read what an old one wrote."""

    kind: str
    """Confluent's `errorType`, such as READER_FIELD_MISSING_DEFAULT_VALUE."""
    description: str
    """Confluent's words. `%new%` and `%old%` stand for which of the two schemas is meant: the check of FORWARD turns them."""
    path: str = ""
    """Where in the schema, such as /fields/1."""
    additional: str | None = None
    """Avro's `additionalInfo`."""


class Schema(Protocol):
    """A parsed schema. It never changes, and two threads may use it."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str:
        """The canonical text: what is stored and answered. Two texts that mean the same thing to Confluent's registry without
        `normalize` have one canonical text."""

    @property
    def references(self) -> tuple[SchemaReference, ...]: ...

    @property
    def full_name(self) -> str | None:
        """For subjects by name of the record: Avro's full name, JSON Schema's title, Protobuf's first message, or None."""

    def normalized(self) -> Schema:
        """With everything in a fixed order and names in full: `normalize=true`."""

    def formatted(self, form: str) -> str:
        """In another form: `resolved` (Avro), `serialized` and `ignore_extensions` (Protobuf). '' and unknown ones: the text."""

    def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
        """Why it cannot read what `older` (of the same kind) wrote. `policy` is STRICT or LENIENT (JSON Schema only)."""


class Parse(Protocol):
    """How each kind's `parsing.parse` is called. `texts` has what `references` name and what those refer to, by `name`; what
    others need comes before them. InvalidSchema."""

    def __call__(
        self, text: str, references: Sequence[SchemaReference], texts: Mapping[str, Referred]
    ) -> Schema: ...
