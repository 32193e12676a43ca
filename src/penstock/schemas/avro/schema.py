"""A parsed Avro schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.schemas.avro.compatibility import incompatibilities
from penstock.schemas.avro.new_schemas import check_new
from penstock.schemas.avro.nodes import Node, Record
from penstock.schemas.avro.text import text_of
from penstock.schemas.model import AVRO, Incompatibility, Referred, Schema, SchemaReference

RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    root: Node
    references: tuple[SchemaReference, ...]
    texts: Mapping[str, Referred]
    """What the references refer to, and what that refers to."""
    text: str
    known: tuple[str, ...]
    """The full names of types that the text has by name only, since the references define them."""

    @classmethod
    def of(
        cls,
        root: Node,
        references: tuple[SchemaReference, ...],
        texts: Mapping[str, Referred],
        known: Iterable[str],
    ) -> AvroSchema:
        names = tuple(known)
        return cls(root, references, texts, text_of(root, names), names)

    @property
    def kind(self) -> str:
        return AVRO

    @property
    def full_name(self) -> str | None:
        """Of a record only, as in Confluent's registry."""
        return self.root.full_name if isinstance(self.root, Record) else None

    def normalized(self) -> AvroSchema:
        # The text in order, read again: the order of properties is the order of the new tree. Imported late: it imports us.
        from penstock.schemas.avro.parsing import parse

        ordered = sorted(dict.fromkeys(self.references), key=lambda each: (each.subject, each.version))
        return parse(text_of(self.root, self.known, is_normal=True), ordered, self.texts)

    def formatted(self, form: str) -> str:
        return text_of(self.root) if form.lower() == RESOLVED else self.text

    def check_new(self) -> None:
        """InvalidSchema when it may not be registered anew, though it may be there already."""
        check_new(self.root)

    def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
        if not isinstance(older, AvroSchema):
            raise TypeError("only schemas of one kind are compared")
        return incompatibilities(self.root, older.root)
