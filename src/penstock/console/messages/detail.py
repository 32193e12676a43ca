"""One record with all that is known about it ◇: for a row that is opened, for the clipboard and for downloads."""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.console.messages.decode import Shown
from penstock.console.messages.lines import json_line
from penstock.console.messages.model import Raw
from penstock.console.messages.rows import Rows, header_text
from penstock.console.messages.texts import cut, pretty, visible

MAX_HEADERS: Final = 200
MAX_COPIED_CHARACTERS: Final = 1_000_000


class BatchFacts(NamedTuple):
    """Of the batch that a record is in."""

    base_offset: int
    last_offset: int
    records_count: int
    size_bytes: int
    codec: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    control: str = ""


class Detail(NamedTuple):
    record: Raw
    batch: BatchFacts


class Part(NamedTuple):
    """A key or value for the eye."""

    kind: str
    text: str
    is_cut: bool
    size_bytes: int
    schema: str
    problem: str


def key_part(detail: Detail, rows: Rows) -> Part:
    return _part(rows.key.shown(detail.record.key), detail.record.key)


def value_part(detail: Detail, rows: Rows) -> Part:
    return _part(rows.value.shown(detail.record.value, key=detail.record.key), detail.record.value)


def header_parts(detail: Detail, rows: Rows) -> list[tuple[str, str]]:
    shown = rows.headers(detail.record.headers[:MAX_HEADERS])
    return [(visible(name), cut(header_text(value), 4_000)[0]) for name, value in shown]


def whole_text(detail: Detail, rows: Rows, *, of_key: bool) -> str:
    """For the clipboard and for files, as the visitor may see it."""
    record = detail.record
    return (rows.key.shown(record.key) if of_key else rows.value.shown(record.value, key=record.key)).text


def _part(shown: Shown, data: bytes | None) -> Part:
    text = pretty(shown.text) if shown.has_document and shown.text[:1] in ("{", "[") else shown.text
    start, is_cut = cut(text)
    is_cut = is_cut or (shown.has_document and len(shown.text) > len(text))
    return Part(shown.kind, start, is_cut, -1 if data is None else len(data), shown.schema, shown.problem)


def copied_text(detail: Detail, rows: Rows, topic: str, what: str) -> str:
    """For the clipboard, as the visitor may see it: "key", "value", or "message" for a line of JSON."""
    if what in ("key", "value"):
        return whole_text(detail, rows, of_key=what == "key")
    return json_line(topic, detail.record, rows).decode().rstrip("\n")
