"""What the parts of this package hand to one another ◇. Light: pages import it without pyarrow and numba, which come with the
first search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.client.errors import UserError
from penstock.console.messages.wanted import Wanted

if TYPE_CHECKING:
    from penstock.arrow.positions import Place

MAX_LIMIT: Final = 5_000
MAX_CHOSEN: Final = 5_000
MAX_EXPORTED: Final = 10_000_000
JSON_LINES, CSV = "jsonl", "csv"
EXPORT_TYPES: Final = {JSON_LINES: "application/x-ndjson", CSV: "text/csv; charset=utf-8"}
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the messages are."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Search:
    """UserError for what cannot be."""

    topic: str
    partitions: tuple[int, ...] | None = None
    start: Place | Mapping[int, Place] = "earliest"
    end: Place | Mapping[int, Place] = "latest"
    """Exclusive."""
    newest_first: bool = True
    limit: int = 100
    committed: bool = True
    """Without what open and aborted transactions wrote."""
    with_control: bool = False
    """With the ends of transactions; they have neither key nor value, so conditions leave them out."""
    wanted: Wanted = field(default_factory=Wanted)

    def __post_init__(self) -> None:
        if not self.topic:
            raise UserError("choose a topic")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise UserError(f"between 1 and {MAX_LIMIT:,} records can be shown, not {self.limit}")


@dataclass(frozen=True, kw_only=True)
class Copy:
    """What is copied where. `chosen`: only these places, (partition, offset), instead of what the search finds."""

    search: Search
    target: str
    keeps_partitions: bool = False
    keeps_timestamps: bool = True
    limit: int | None = None
    chosen: Sequence[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not self.target:
            raise UserError("choose the topic to copy to")
        if self.chosen is not None and not 1 <= len(self.chosen) <= MAX_CHOSEN:
            raise UserError(f"choose between 1 and {MAX_CHOSEN:,} records")
        if self.limit is not None and self.limit < 1:
            raise UserError("at least 1 record is copied")


@dataclass
class Counts:
    """What a read has seen so far. Written by its thread only; others may look."""

    bytes: int = 0
    records: int = 0
    offsets: int = 0
    """Of the ranges; compaction and markers leave fewer records than offsets."""
    deleted: int = 0
    """Offsets that were deleted while they were read."""


@dataclass
class Progress:
    """How far it is. One thread writes, others read."""

    counts: Counts = field(default_factory=Counts)
    total: int = 0
    """Offsets of all ranges. A search that has its rows may end before."""
    matched: int = 0
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float | None = None
    state: str = "running"
    """running, done, stopped, failed."""
    error: str = ""

    @property
    def elapsed_s(self) -> float:
        return (self.ended_s or time.monotonic()) - self.began_s

    @property
    def fraction(self) -> float:
        return min(1.0, self.counts.offsets / self.total) if self.total else 1.0

    def end(self, state: str, error: str = "") -> None:
        if self.state == "running":
            self.error = error
            self.ended_s = time.monotonic()
            self.state = state


class Cell(NamedTuple):
    text: str
    """The beginning, on one line."""
    kind: str
    """See `decode.Shown.kind`."""
    size_bytes: int
    """-1: null."""
    problem: str = ""


class Row(NamedTuple):
    """A record in a table: small, whatever it holds."""

    partition: int
    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: Cell
    value: Cell
    headers: str
    headers_count: int
    control: str = ""
    """commit, abort or control for the end of a transaction, which is no record of a producer."""


class Raw(NamedTuple):
    """A record as it is in the topic."""

    partition: int
    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: Headers


class Control(NamedTuple):
    """The end of a transaction in a partition: a control record."""

    partition: int
    offset: int
    timestamp_ms: int
    kind: str
    """commit, abort, or control for one that is no marker of a transaction."""
    producer_id: int
    producer_epoch: int
