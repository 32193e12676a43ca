"""Which transactional batches and markers a cleaning may drop.

Batches of an aborted transaction go at once. A marker stays as long as a batch of its transaction does; when none is
left it gets a delete horizon, as a tombstone does, and goes after it.
"""

from collections.abc import Iterable

from penstock.records.batch import BatchHeader, Buffer, InvalidRecord
from penstock.records.marker import marker_of
from penstock.storage.transaction_index import AbortedTransaction


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
        if header.records_count == 0:
            return True  # its record went in an earlier cleaning
        marker = marker_of(batch, header)
        producer_id = header.producer_id
        if marker is None:
            if producer_id >= 0:
                raise InvalidRecord("a control batch of a producer that is no marker")
            return False
        if marker.committed:
            if producer_id not in self._with_batches:
                return True
            self._with_batches.discard(producer_id)
            return False
        transaction = self._ongoing.pop(producer_id, None)
        if transaction is None or producer_id not in self._seen_batches:
            return True
        self._seen_batches.discard(producer_id)
        self.kept_aborted.append(transaction)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= offset:
            transaction = self._aborted.pop()
            self._ongoing.setdefault(transaction.producer_id, transaction)
