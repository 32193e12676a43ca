"""Which transactional batches and markers a cleaning may drop.

Batches of an aborted transaction go at once. A marker stays as long as a batch of its transaction does; when none is
left it gets a delete horizon, as a tombstone does, and goes after it.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from penstock.records.batch import BatchHeader, Buffer, InvalidRecord
from penstock.records.walk import iterate_records

ABORT, COMMIT = 0, 1
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_ENTRY = struct.Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_transaction_index(data: bytes) -> list[AbortedTransaction]:
    whole = len(data) - len(data) % ENTRY_SIZE
    return [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data[:whole])]


def encode_transaction(transaction: AbortedTransaction) -> bytes:
    return _ENTRY.pack(0, *transaction)


class Transactions:
    """Follows the batches of a log in order; each question is asked once per batch."""

    __slots__ = ("_aborted", "_ongoing", "_seen_batches", "_with_batches", "kept_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted = sorted(set(aborted), key=lambda each: each.first_offset, reverse=True)
        self._ongoing: dict[int, AbortedTransaction] = {}  # aborted ones, by producer id
        self._seen_batches: set[int] = set()  # producer ids of those of which a batch came by
        self._with_batches: set[int] = set()  # producer ids of committed ones, likewise
        self.kept_aborted: list[AbortedTransaction] = []
        """For the index of the segment being written; whoever writes it empties the list."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """A data batch was read."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing:
            self._seen_batches.add(header.producer_id)
            return True
        self._with_batches.add(header.producer_id)
        return False

    def is_marker_without_batches(self, header: BatchHeader, batch: Buffer) -> bool:
        """A control batch was read; InvalidRecord when it cannot be understood."""
        self._begin_up_to(header.last_offset)
        kind = control_type(header, batch)
        producer_id = header.producer_id
        if kind is None:
            return True  # its record went in an earlier cleaning
        if kind == ABORT:
            transaction = self._ongoing.pop(producer_id, None)
            if transaction is None or producer_id not in self._seen_batches:
                return True
            self._seen_batches.discard(producer_id)
            self.kept_aborted.append(transaction)
            return False
        if kind == COMMIT:
            if producer_id not in self._with_batches:
                return True
            self._with_batches.discard(producer_id)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= offset:
            transaction = self._aborted.pop()
            self._ongoing.setdefault(transaction.producer_id, transaction)


def control_type(header: BatchHeader, batch: Buffer) -> int | None:
    """The type of a control batch's record; None when it has none any more."""
    for record in iterate_records(batch, header):
        try:
            _, kind = _CONTROL_KEY.unpack_from(record.key or b"")
        except struct.error:
            raise InvalidRecord("a control record without a type") from None
        return int(kind)
    return None
