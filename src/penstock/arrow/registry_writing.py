"""A column as values that begin with the id of a schema, which is registered or looked up under the subject.

Confluent's rules: `use.latest.version` writes with the newest schema of the subject, `auto.register.schemas` (on by default)
registers the one that is given or made of the column, and without it the schema must be there.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.arrow.registry_schemas import (
    FORMATS,
    SchemaText,
    WriteFormat,
    format_module,
    registered,
)
from penstock.client.errors import UserError
from penstock.schemas.framing import framed
from penstock.schemas.subject_names import TOPIC_NAME, subject_of

MAX_WRITERS: Final = 256
LATEST_KEPT_S: Final = 60.0
RECORD_NAME: Final = "topLevelRecord"
"""Spark's own, for a schema that is made of a column."""


class NotEncoded(UserError):
    """A row that does not fit its schema, or a column."""


class _Kept(NamedTuple):
    writer: Any
    at_s: float


_writers: OrderedDict[tuple[WriteFormat, str, pa.DataType], _Kept] = OrderedDict()
_lock = Lock()


def encoded(column: pa.Array, how: WriteFormat, topic: str) -> pa.BinaryArray:
    """UserError and what the registry says; null stays null."""
    writer = writer_for(how, topic, column.type)
    try:
        written: pa.BinaryArray = writer.write(column)
    except ValueError as error:
        raise NotEncoded(f"the {_what(how)} for '{topic}' cannot be written: {error}") from None
    return written


def encoded_by_topic(column: pa.Array, how: WriteFormat, topics: pa.StringArray) -> pa.BinaryArray:
    """Each row by the schema of its own topic."""
    names = [name for name in pc.unique(topics).to_pylist() if name is not None]
    if len(names) == 1 and not topics.null_count:
        return encoded(column, how, names[0])
    found = pa.nulls(len(column), pa.binary())
    for name in names:
        mask = pc.fill_null(pc.equal(topics, name), False)
        found = pc.replace_with_mask(found, mask, encoded(column.filter(mask), how, name))
    return found


def writer_for(how: WriteFormat, topic: str, kind: pa.DataType) -> Any:
    """The one of this process; the newest schema of a subject is asked for again after a while."""
    identity = (how, topic, kind)
    now_s = time.monotonic()
    with _lock:
        kept = _writers.get(identity)
        if kept is not None and (not how.use_latest or now_s - kept.at_s < LATEST_KEPT_S):
            return kept.writer
    schema = written_schema(how, topic, kind)
    home = format_module(schema.kind)
    try:
        writer = home.format_writer(schema, kind, framed(schema.id, b""))
    except ValueError as error:
        raise NotEncoded(f"the {_what(how)} for '{topic}' cannot be written: {error}") from None
    with _lock:
        _writers[identity] = _Kept(writer, now_s)
        while len(_writers) > MAX_WRITERS:
            _writers.popitem(last=False)
    return writer


def written_schema(how: WriteFormat, topic: str, kind: pa.DataType) -> SchemaText:
    """Registered, with its id."""
    home = format_module(FORMATS[how.format])
    text = how.schema
    if text is None and not (how.use_latest and (how.subject or how.strategy == TOPIC_NAME)):
        if how.strategy != TOPIC_NAME:
            raise UserError(f"{how.strategy} needs the schema, whose name is part of the subject")
        try:
            text = home.schema_text_of(kind, RECORD_NAME)
        except ValueError as error:
            raise NotEncoded(f"no schema is made of the {_what(how)}: {error}") from None
    own = SchemaText(FORMATS[how.format], text or "", message=how.message)
    try:
        subject = how.subject or subject_of(
            topic, is_key=how.is_key, strategy=how.strategy, full_name=lambda: home.full_name(own)
        )
    except ValueError as error:
        raise UserError(f"the schema of the {_what(how)}: {error}") from None
    if how.use_latest:
        return registered(how.registry, subject, None, how.format)._replace(message=how.message)
    client = how.registry.client()
    ask = client.register if how.auto_register else client.lookup
    schema_id = ask(subject, own.text, own.kind, normalize=how.normalize)
    return own._replace(id=schema_id, subject=subject)


def _what(how: WriteFormat) -> str:
    return "column 'key'" if how.is_key else "column 'value'"
