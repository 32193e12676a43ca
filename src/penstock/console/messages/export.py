"""Records as a stream of lines, as a visitor may see them. Memory is bounded; who stops reading stops the read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.client.errors import UserError
from penstock.console.messages.columns import raws, searchable
from penstock.console.messages.lines import CsvLines, JsonLines
from penstock.console.messages.matching import Matcher
from penstock.console.messages.model import CSV, EXPORT_TYPES, MAX_EXPORTED, Raw, Search, Source
from penstock.console.messages.reading import Reader
from penstock.console.messages.rows import Rows
from penstock.console.messages.scan import MASKED_ROWS, ranges_of

CHUNK_BYTES: Final = 256 << 10


def export(
    source: Source, search: Search, rows: Rows, form: str, *, limit: int, as_documents: bool = False,
    stopped: threading.Event | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """In order within each partition; `search.limit` and `newest_first` do not matter. `as_documents`: values that are
    JSON become objects in the lines, and not texts. Blocks between the chunks."""
    if form not in EXPORT_TYPES:
        raise UserError(f"'{form}' is no form of an export: there are {', '.join(EXPORT_TYPES)}")
    if not 1 <= limit <= MAX_EXPORTED:
        raise UserError(f"between 1 and {MAX_EXPORTED:,} records can be exported at once")
    write = CsvLines() if form == CSV else JsonLines(search.topic, as_documents=as_documents)
    return _chunks(source, search, rows, write, limit, stopped or threading.Event())


def _chunks(
    source: Source,
    search: Search,
    rows: Rows,
    write: CsvLines | JsonLines,
    limit: int,
    stopped: threading.Event,
) -> Iterator[bytes]:
    chunk = [write.head()]
    size = 0
    try:
        for record in _records(source, search, rows, limit, stopped):
            line = write.line(record, rows)
            chunk.append(line)
            size += len(line)
            if size >= CHUNK_BYTES:
                yield b"".join(chunk)
                chunk, size = [], 0
        yield b"".join(chunk)
    finally:
        stopped.set()


def _records(
    source: Source, search: Search, rows: Rows, limit: int, stopped: threading.Event
) -> Iterator[Raw]:
    left = limit
    matcher = Matcher(search.wanted, rows.value.document)
    with Reader(source.bootstrap, source.properties, committed=search.committed, stopped=stopped) as reader:
        topic = reader.topic(search.topic)
        for batch in reader.batches(topic, ranges_of(reader, topic, search)):
            if isinstance(batch, list):
                continue
            is_masked = rows.mask is not None and not search.wanted.is_everything
            mask = None if is_masked else matcher.mask(batch)
            hits = np.arange(batch.num_rows) if mask is None else np.flatnonzero(mask)
            for start in range(0, len(hits), MASKED_ROWS):
                part = hits[start : start + MASKED_ROWS]
                if is_masked:  # what is hidden is not looked at, not even first: see `scan.Finder`
                    seen = matcher.mask(searchable(rows, batch, part))
                    part = part if seen is None else part[seen]
                yield from raws(batch, part[:left])
                left -= len(part[:left])
                if left <= 0 or stopped.is_set():
                    return
