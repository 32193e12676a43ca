"""Whole batches from partitions of the source to those of the same number at the target.

    follower ──pieces──► batches made fit ──► writer ──offsets at the target──► pairs (upstream, downstream)
                                                │
                       how far we are: every `offset.flush.interval.ms`, or in the transaction with the batches

At least once: it is kept how far we are behind what is written, and pairs before that. Exactly once: the batches and how far
they go are in one transaction, with the pairs; after its commit those go to their own topic.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.client.errors import ReadFailed
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.tasks.settings import WorkerSettings
from penstock.mirror.batches import outgoing
from penstock.mirror.clusters import SOURCE, TARGET, begins_at_end, is_read_committed, options_of
from penstock.mirror.following import EARLIEST, LATEST, Answer, Follower
from penstock.mirror.formats import OffsetSync
from penstock.mirror.keeping import Kept, store_of, write_records
from penstock.mirror.naming import Naming
from penstock.mirror.progress import Progress
from penstock.mirror.translation import Tracking
from penstock.mirror.writing import BatchWriter, Sending
from penstock.model.ids import TopicPartition
from penstock.records.batch import InvalidRecord

log = logging.getLogger("penstock.mirror")

WAIT_S: Final = 0.1
IDLE_COMMIT_S: Final = 0.1
QUIET_S: Final = 5.0
"""After so long it is kept, too, that what came had nothing to be copied."""


class Lane:
    """Use from one thread."""

    def __init__(
        self,
        *,
        given: Mapping[str, str],
        values: Mapping[str, Any],
        worker: WorkerSettings,
        connector: str,
        task: int,
        places: Sequence[TopicPartition],
        naming: Naming,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._naming, self._places = naming, tuple(places)
        self._is_stopping = is_stopping
        self._is_exactly_once = worker.is_exactly_once
        self._flush_s = values["offset.flush.interval.ms"] / 1000
        self._transaction_s = values["transaction.boundary.interval.ms"] / 1000
        self._isolation_level = 1 if is_read_committed(given) else 0
        self._reset_to = LATEST if begins_at_end(given) else EARLIEST
        self._source_options = options_of(given, SOURCE, "consumer")
        name = f"{worker.group_id or 'mirror'}-{naming.source}->{naming.target}-{connector}-{task}-batches"
        self._writer = BatchWriter(
            options_of(given, TARGET, "producer"),
            transactional_id=name if self._is_exactly_once else None,
            check=self._check,
        )
        store, self._offsets_topic = store_of(worker, given)
        if self._is_exactly_once and self._offsets_topic is None:
            raise ConnectError("offset.storage.topic: exactly once needs a topic for offsets at the target")
        self._kept = Kept(store, connector, naming.source)
        self._syncs: BatchWriter | None = None
        at_source = values["offset-syncs.topic.location"] == SOURCE
        self._syncs_topic = naming.offset_syncs_topic(at_source=at_source)
        if values["emit.offset-syncs.enabled"]:
            options = options_of(given, SOURCE if at_source else TARGET, "producer")
            self._syncs = BatchWriter(options, check=self._check)
        self._offset_writer = self._writer
        self._follower: Follower | None = None
        self._progress = Progress.of(naming.source, naming.target)
        self._remote = {
            place: TopicPartition(naming.remote(place.topic), place.partition) for place in places
        }
        self._next: dict[TopicPartition, int] = {}
        self._tracking: dict[TopicPartition, Tracking] = {}
        self._moved: set[TopicPartition] = set()
        """Since it was last kept how far we are."""
        self._pairs: dict[TopicPartition, list[OffsetSync]] = {}
        """To be told."""
        self._told: dict[TopicPartition, OffsetSync] = {}
        self._kept_s = self._began_s = time.monotonic()
        self._is_whole = False
        """Nothing has failed: what was written may be kept."""

    def open(self) -> None:
        """ConnectError. An earlier task of this name cannot write any more, and what it left open is undone."""
        self._writer.open()
        known = self._kept.load(self._places)
        for place in self._places:
            offset, slot, pairs = known.get(place, (self._reset_to, 0, []))
            self._next[place] = offset
            self._tracking[place] = Tracking(*place, slot)
            if pairs:
                self._pairs[place] = pairs
        if self._syncs is not None:
            self._syncs.open()
            self._tell_pairs()
        self._follower = Follower(
            self._source_options, self._next, isolation_level=self._isolation_level, reset_to=self._reset_to
        )
        self._is_whole = True

    def step(self) -> int:
        """Moves what comes within a moment; how many batches that was. ConnectError."""
        assert self._follower is not None
        is_whole, self._is_whole = self._is_whole, False
        try:
            answer = self._follower.next(WAIT_S)
            moved = 0
            if answer is not None:
                try:
                    moved = self._move(answer)
                finally:
                    self._follower.give_back(answer)
            self._keep_if_due(is_idle=answer is None)
        except ReadFailed as error:
            raise ConnectError(str(error)) from error
        except InvalidRecord as error:
            raise ConnectError(f"the source cluster has sent what cannot be copied: {error}") from error
        self._is_whole = is_whole
        for place, end in list(self._follower.ends.items()):
            self._progress.reached(place, max(0, self._next[place]), end)
        return moved

    def keep(self) -> None:
        """How far we are."""
        if not self._is_whole:
            return
        self._is_whole = False
        if self._is_exactly_once:
            self._commit()
        elif self._moved:
            self._tell_pairs()
            self._write_offsets()
        self._is_whole = True

    def close(self) -> None:
        self._progress.forget(list(self._places))
        if self._follower is not None:
            self._follower.close()
        if self._writer.is_in_transaction:
            try:
                self._writer.end(is_commit=False)
            except ConnectError as error:
                log.info("the transaction is left to its timeout: %s", error)
        self._writer.close()
        if self._syncs is not None:
            self._syncs.close()

    def _move(self, answer: Answer) -> int:
        sendings: list[tuple[TopicPartition, Sending]] = []
        reached: dict[TopicPartition, int] = {}
        records = size_bytes = 0
        for piece in answer.pieces:
            fetched = outgoing(piece.records, piece.start_offset, piece.aborted)
            reached[piece.place] = fetched.next_offset
            remote = self._remote[piece.place]
            for batch in fetched.batches:
                records += batch.count
                size_bytes += len(batch.data)
                sendings.append((piece.place, Sending(remote, batch)))
        if sendings:
            if self._is_exactly_once and not self._writer.is_in_transaction:
                self._writer.begin()
                self._began_s = time.monotonic()
            self._writer.write([sending for _, sending in sendings])
            self._note(sendings)
        self._next.update(reached)
        self._moved.update(reached)
        self._progress.wrote(records, size_bytes)
        return len(sendings)

    def _note(self, sendings: Sequence[tuple[TopicPartition, Sending]]) -> None:
        for place, sending in sendings:
            tracking = self._tracking[place]
            for upstream, at, count in sending.batch.runs:
                pair = tracking.see(upstream, sending.base_offset + at, count)
                if pair is not None:
                    self._pairs.setdefault(place, []).append(pair)

    def _keep_if_due(self, *, is_idle: bool) -> None:
        now_s = time.monotonic()
        if not self._is_exactly_once:
            if self._moved and now_s - self._kept_s >= self._flush_s:
                self._tell_pairs()
                self._write_offsets()
        elif self._writer.is_in_transaction:
            age_s = now_s - self._began_s
            if age_s >= self._transaction_s or (is_idle and age_s >= min(IDLE_COMMIT_S, self._transaction_s)):
                self._commit()
        elif self._moved and now_s - self._kept_s >= QUIET_S:
            self._commit()

    def _commit(self) -> None:
        if not self._moved:
            return
        if not self._writer.is_in_transaction:
            self._writer.begin()
        self._write_offsets()
        self._writer.end(is_commit=True)
        self._tell_pairs()

    def _write_offsets(self) -> None:
        moved = {place: self._next[place] for place in self._moved}
        pairs = self._pairs if self._is_exactly_once and self._syncs is not None else {}
        write_records(self._writer, self._kept.records(moved, self._tracking, pairs))
        self._moved.clear()
        self._kept_s = time.monotonic()

    def _tell_pairs(self) -> None:
        """Those that are new, and behind them how far the last one holds."""
        if self._syncs is None:
            self._pairs.clear()
            return
        syncs = [pair for pairs in self._pairs.values() for pair in pairs]
        for place, tracking in self._tracking.items():
            if tracking.last is not None and tracking.last != self._told.get(place):
                syncs.append(tracking.last)
        if syncs:
            write_records(self._syncs, [(self._syncs_topic, sync.key(), sync.value()) for sync in syncs])
        self._told.update(
            {TopicPartition(sync.topic, sync.partition): sync for sync in syncs if sync.slot is None}
        )
        self._pairs.clear()

    def _check(self) -> None:
        if self._is_stopping():
            raise RetriableError("the task is to stop")
