"""A parsed Protobuf schema."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool

from penstock.schemas.model import PROTOBUF, Incompatibility, Schema, SchemaReference
from penstock.schemas.protobuf import compatibility
from penstock.schemas.protobuf.elements import File
from penstock.schemas.protobuf.indexes import MessageIndexes
from penstock.schemas.protobuf.linking import Linked, Names
from penstock.schemas.protobuf.normalizing import normalize
from penstock.schemas.protobuf.writing import write

NAME: Final = "default"
"""Of the file, as Confluent's registry calls it."""
SERIALIZED: Final = "serialized"
IGNORE_EXTENSIONS: Final = "ignore_extensions"


class ProtobufSchema:
    """Made by `parsing.parse`."""

    kind = PROTOBUF

    def __init__(
        self,
        *,
        file: File,
        text: str,
        references: tuple[SchemaReference, ...],
        linked: Linked,
        names: Names,
        imports: Mapping[str, Linked],
        pool: DescriptorPool,
        again: Callable[[str, tuple[SchemaReference, ...]], ProtobufSchema],
    ) -> None:
        self.text = text
        self.references = references
        self.imports = imports
        """All files that it needs, by path."""
        self.pool = pool
        """With it and them; of its own."""
        self.indexes = MessageIndexes(file)
        self._file = file
        self._linked = linked
        self._names = names
        self._again = again

    @property
    def proto(self) -> descriptor_pb2.FileDescriptorProto:
        """Full names, options interpreted. Not to be changed."""
        return self._linked.proto

    @property
    def full_name(self) -> str | None:
        """Of the first message, or else of the first enum."""
        types = self._file.messages or self._file.enums
        if not types:
            return None
        return f"{self._file.package}.{types[0].name}" if self._file.package else types[0].name

    def message(self, full_name: str) -> Descriptor:
        """One of its own, or of those that it imports. KeyError."""
        found: Descriptor = self.pool.FindMessageTypeByName(full_name)
        return found

    @cached_property
    def types(self) -> compatibility.Types:
        """For comparison."""
        return compatibility.Types(self._linked, self.imports.values())

    def normalized(self) -> ProtobufSchema:
        text = write(normalize(self._file, self._names))
        ordered = sorted(set(self.references), key=lambda each: (each.subject, each.version, each.name))
        if text == self.text and tuple(ordered) == self.references:
            return self
        return self._again(text, tuple(ordered))

    def formatted(self, form: str) -> str:
        if form == SERIALIZED:
            return base64.b64encode(self.proto.SerializeToString(deterministic=True)).decode()
        if form == IGNORE_EXTENSIONS:
            return write(self._file, ignore_extensions=True)
        return self.text

    def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
        assert isinstance(older, ProtobufSchema)
        return compatibility.incompatibilities(older.types, self.types)
