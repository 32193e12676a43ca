"""The transaction indexes of a log against its markers, segment by segment from the first.

What the log's own batches tell must be in the index. The index may know more: of transactions whose batches have been
deleted or compacted away; but for each entry the marker must be there.
"""

import os

from penstock.inspection.problems import REBUILD_INDEXES, Problem
from penstock.model.units import count_text
from penstock.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, read_header
from penstock.storage.names import TRANSACTION_INDEX_SUFFIX, segment_path
from penstock.storage.producer_state import ProducerState
from penstock.storage.replay import replay_batch
from penstock.storage.transaction_index import AbortedTransaction, find_problem, read_entries

MARKED_BITS = TRANSACTIONAL_BIT | CONTROL_BIT
"""Batches with one of these attributes are to be told."""


class TransactionCheck:
    """One for a log; `begin`, `batch` and `finish` for each of its segments."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._producers = ProducerState()
        self._aborted: list[AbortedTransaction] = []
        self._markers: set[tuple[int, int]] = set()  # producer id, offset

    def begin(self) -> None:
        self._aborted, self._markers = [], set()

    def batch(self, batch: memoryview) -> None:
        header = read_header(batch)
        if header.producer_id < 0:
            return
        if header.is_control:
            self._markers.add((header.producer_id, header.base_offset))
        aborted = replay_batch(self._producers, header, batch, header.base_offset)
        if aborted is not None:
            self._aborted.append(aborted)

    def finish(self, base_offset: int, *, end_offset: int, is_complete: bool, is_live: bool) -> list[Problem]:
        """`is_complete`: all of the segment could be read. `is_live`: a broker may just be writing to it."""
        path = segment_path(self._directory, base_offset, TRANSACTION_INDEX_SUFFIX)
        data = b""
        if os.path.exists(path):
            with open(path, "rb") as file:
                data = file.read()
        if is_live:
            return []
        cause = find_problem(data, base_offset=base_offset, end_offset=end_offset if is_complete else None)
        if cause:
            return [Problem(path, cause, repair=REBUILD_INDEXES)]
        known = {(entry.producer_id, entry.last_offset) for entry in read_entries(data)}
        problems = []
        missing = [one for one in self._aborted if (one.producer_id, one.last_offset) not in known]
        if missing:
            what = count_text(len(missing), "aborted transaction is", "aborted transactions are")
            cause = f"{what} not in it, the first of producer {missing[0].producer_id}"
            offset = missing[0].last_offset
            problems.append(Problem(path, cause, offset=offset, repair=REBUILD_INDEXES))
        unfounded = sorted(offset for _, offset in known - self._markers)
        if unfounded and is_complete:
            entries = count_text(len(unfounded), "entry names a marker", "entries name markers")
            cause = f"{entries} that the log does not have"
            problems.append(Problem(path, cause, offset=unfounded[0], repair=REBUILD_INDEXES))
        return problems
