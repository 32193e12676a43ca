"""A text, or a serialized FileDescriptorProto in base64, becomes a schema."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, message, message_factory
from google.protobuf.message import DecodeError

from penstock.schemas.model import (
    MAX_TEXT_CHARACTERS,
    InvalidSchema,
    Referred,
    SchemaReference,
)
from penstock.schemas.protobuf.checking import check
from penstock.schemas.protobuf.describing import describe
from penstock.schemas.protobuf.elements import File
from penstock.schemas.protobuf.imports import Imports, add
from penstock.schemas.protobuf.linking import link
from penstock.schemas.protobuf.options import OptionFilling
from penstock.schemas.protobuf.reading import read_file
from penstock.schemas.protobuf.schema import NAME, ProtobufSchema
from penstock.schemas.protobuf.undescribing import has_text_only, undescribe
from penstock.schemas.protobuf.well_known import DESCRIPTOR
from penstock.schemas.protobuf.writing import write

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]++={0,2}\s*", re.ASCII)


def parse(text: str, references: Sequence[SchemaReference], texts: Mapping[str, Referred]) -> ProtobufSchema:
    """InvalidSchema."""
    file = _read(text, texts)
    canonical = write(file)
    if len(canonical) > MAX_TEXT_CHARACTERS:
        raise InvalidSchema(f"a schema has at most {MAX_TEXT_CHARACTERS:,} characters in its canonical form")
    imports = Imports(texts, lambda each: _read(each, texts))
    described = describe(file, _name(texts))
    proto = described.proto
    imported = imports.load(proto.dependency)
    linked, names = link(proto, imported)
    filling = OptionFilling(names)
    for pending in described.pending:
        filling.fill(pending)
    check(proto)
    filling.extensions(lambda: _with(imports, proto))
    pool = imports.pool()
    add(pool, proto.SerializeToString(), "the schema")
    return ProtobufSchema(
        file=file,
        text=canonical,
        references=tuple(references),
        linked=linked,
        names=names,
        imports=imports.files,
        pool=pool,
        again=lambda normal, sorted_references: parse(normal, sorted_references, texts),
    )


def _name(texts: Mapping[str, Referred]) -> str:
    """Of the file itself: one that nothing is imported by."""
    name = NAME
    while name in texts:
        name += "_"
    return name


def _with(imports: Imports, proto: descriptor_pb2.FileDescriptorProto) -> Any:
    """A pool in which the file's own extensions are known, to read options with."""
    pool = imports.pool(with_descriptor=True)
    add(pool, proto.SerializeToString(), "the schema")
    return pool


def _read(text: str, texts: Mapping[str, Referred]) -> File:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("it has characters that are none (half of a surrogate pair)") from None
    serialized = _decoded(text)
    if serialized is None:
        return read_file(text)
    try:
        proto = descriptor_pb2.FileDescriptorProto.FromString(serialized)
    except DecodeError:
        raise InvalidSchema("it is neither the text of a .proto file nor a serialized descriptor") from None
    if not proto.IsInitialized():
        raise InvalidSchema("the serialized descriptor lacks a part of an option's name")
    if not has_text_only(proto):
        raise InvalidSchema("a name in the serialized descriptor is no UTF-8")
    return _undescribed(proto, texts)


def _decoded(text: str) -> bytes | None:
    """What base64 there is in it. Each word of a .proto file is followed by a sign that base64 does not have."""
    if not text.strip() or not _BASE64.fullmatch(text):
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _undescribed(proto: descriptor_pb2.FileDescriptorProto, texts: Mapping[str, Referred]) -> File:
    """Options of users are bytes in it: with what it imports they get their names back."""
    if any(not 0 <= index < len(proto.dependency) for index in proto.public_dependency):
        raise InvalidSchema("the serialized descriptor has a public import that is not there")
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(proto)
    copy.name = _name(texts)
    imports = Imports(texts, lambda each: _read(each, texts))
    imported = imports.load(copy.dependency)
    pool: Any = None

    def reread(options: Any) -> message.Message:
        nonlocal pool
        if DESCRIPTOR not in imports.files:
            return options
        if pool is None:
            link(copy, imported)
            pool = imports.pool()
            add(pool, copy.SerializeToString(), "the schema")
        kind = pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        read: message.Message = message_factory.GetMessageClass(kind)()
        try:
            read.ParseFromString(options.SerializeToString())
        except DecodeError as e:
            raise InvalidSchema(f"an option cannot be read: {' '.join(str(e).split())[:200]}") from None
        return read

    return undescribe(proto, reread)
