"""One cleaning of one log: map the keys of the dirty part, then copy each segment without what is superseded.

The offsets that a batch covers stay in its header when records inside it go. A batch that loses all of them goes
too, unless it is the last of an active producer, or the last of the cleaned part (a log never ends with a gap that
nobody can see): those stay without records.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from penstock.records import compression
from penstock.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    InvalidRecord,
)
from penstock.records.build import sign
from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.storage.compaction import filter_kernels, layout, map_kernels
from penstock.storage.compaction.cleaned_segment import SegmentWriter
from penstock.storage.compaction.key_map import KeyMap
from penstock.storage.compaction.source import SegmentReader
from penstock.storage.compaction.task import (
    NO_OFFSET,
    ActiveProducer,
    CleanedSegment,
    CleaningResult,
    CleaningTask,
    SourceSegment,
)
from penstock.storage.compaction.transactions import Transactions
from penstock.storage.compaction.unfold import Unfolding
from penstock.storage.index import OffsetIndex
from penstock.storage.segment import MAX_RELATIVE_OFFSET
from penstock.storage.transaction_index import AbortedTransaction, read_entries

_FIRST_RECORDS = 4096
_BYTES_PER_KEY = 512  # a first guess at the size of the map, in bytes of log
_NO_HORIZON = -1
_GROWTH_PER_RECORD = 11  # bytes that a record may gain when its timestamp is written again

Report = Callable[[float | CleanedSegment], None]
Throttle = Callable[[int], None]


class Cleaning:
    """`run` does it all. `report` is told about progress and each segment that is ready; `throttle` about bytes."""

    def __init__(self, disk: Disk, task: CleaningTask, *, report: Report, throttle: Throttle) -> None:
        self._disk = disk
        self._task = task
        self._report = report
        self._throttle = throttle
        self._scratch = np.empty((layout.SCRATCH_ROWS, _FIRST_RECORDS), dtype=np.int64)
        self._unfolding = Unfolding()
        dirty_bytes = sum(
            s.size_bytes for s, following in self._with_ends() if following > task.first_dirty_offset
        )
        self._map = KeyMap(
            max_bytes=task.map_bytes,
            load_factor=task.map_load_factor,
            expected_keys=dirty_bytes // _BYTES_PER_KEY,
        )
        self._latest_offset = task.first_dirty_offset - 1  # everything up to here is in the map
        self._bytes_to_do = max(dirty_bytes + sum(s.size_bytes for s in task.segments), 1)
        self._bytes_done = 0
        self._bytes_written = 0
        self._map_entries = 0
        self._totals = np.zeros(layout.STATE_WORDS, dtype=np.int64)
        self._producers = {producer.producer_id: producer for producer in task.producers}
        with_data = sorted(producer for producer in task.producers if producer.last_offset != NO_OFFSET)
        self._producer_ids = np.array([producer.producer_id for producer in with_data], dtype=np.int64)
        self._last_offsets = np.array([producer.last_offset for producer in with_data], dtype=np.int64)
        horizon = min(task.now_ms + task.delete_retention_ms, 2**63 - 1)
        self._options = np.zeros(layout.OPTION_WORDS, dtype=np.int64)
        self._options[layout.NOW] = task.now_ms
        self._options[layout.DELETE_HORIZON] = self._new_horizon = horizon
        self._options[layout.UPPER_BOUND] = task.end_offset
        self._options[layout.INDEX_INTERVAL] = task.index_interval_bytes

    def run(self) -> CleaningResult:
        aborted = self._aborted_transactions()
        # This walk begins at the dirty part: it meets no marker of what ended before, and must not wait for one.
        dirty_from = self._task.first_dirty_offset
        self._map_keys(Transactions(each for each in aborted if each.last_offset >= dirty_from))
        bytes_mapped = self._bytes_done
        next_dirty_offset = self._latest_offset + 1
        transactions = Transactions(aborted)
        for group in self._groups(next_dirty_offset):
            self._report(self._clean_group(group, transactions))
        totals = self._totals
        return CleaningResult(
            next_dirty_offset=next_dirty_offset,
            bytes_read=self._bytes_done - bytes_mapped,
            bytes_written=self._bytes_written,
            records_read=int(totals[layout.RECORDS_READ]),
            records_kept=int(totals[layout.RECORDS_KEPT]),
            null_keys=int(totals[layout.NULL_KEYS]),
            map_entries=self._map_entries,
        )

    # --- the first walk: which offset is the last of its key

    def _map_keys(self, transactions: Transactions) -> None:
        task = self._task
        state = np.zeros(layout.STATE_WORDS, dtype=np.int64)
        state[layout.LATEST_OFFSET] = self._latest_offset
        for segment, following in self._with_ends():
            if following <= task.first_dirty_offset:
                continue
            if not self._map_segment(segment, transactions, state):
                break
            state[layout.LATEST_OFFSET] = max(state[layout.LATEST_OFFSET], following - 1)
        self._latest_offset = int(state[layout.LATEST_OFFSET])
        self._map_entries = int(state[layout.ENTRIES])

    def _map_segment(self, segment: SourceSegment, transactions: Transactions, state: layout.Words) -> bool:
        """False when the map is full."""
        task = self._task
        start = 0
        if segment.base_offset < task.first_dirty_offset:
            path = names.segment_path(task.directory, segment.base_offset, names.OFFSET_INDEX_SUFFIX)
            index = OffsetIndex(self._disk, path, segment.base_offset, segment.index_bytes)
            start = index.lookup(task.first_dirty_offset)
        with SegmentReader(self._disk, task.directory, segment, task.buffer_bytes, start=start) as reader:
            state[layout.POSITION] = 0
            self._advance(start)
            while reader.fill(state):
                before = int(state[layout.POSITION])
                status = map_kernels.map_batches(
                    reader.buffer, task.first_dirty_offset, self._map.table, self._map.max_entries,
                    self._map.secret, self._scratch, state,
                )  # fmt: skip
                full = False
                if status == layout.SPECIAL:
                    full = not self._map_special(reader, transactions, state)
                elif status == layout.MAP_FULL:
                    full = not self._map.grow()
                else:
                    self._settle(status, reader, state)
                self._advance(int(state[layout.POSITION]) - before)
                if full:
                    return False
        return True

    def _map_special(self, reader: SegmentReader, transactions: Transactions, state: layout.Words) -> bool:
        header, batch = reader.batch_at(state)
        last_offset = header.last_offset
        try:
            if header.is_control:
                transactions.is_marker_without_batches(header, batch)
            elif not transactions.is_aborted(header) and last_offset >= self._task.first_dirty_offset:
                self._open(header, batch)
                while map_kernels.map_parsed(
                    self._scratch, header.records_count, self._task.first_dirty_offset, self._map.table,
                    self._map.max_entries, state,
                ) == layout.MAP_FULL:  # fmt: skip
                    if not self._map.grow():
                        return False
        except InvalidRecord as error:
            raise reader.corrupt(state, str(error)) from error
        if last_offset >= self._task.first_dirty_offset:
            state[layout.LATEST_OFFSET] = last_offset
        state[layout.POSITION] += header.size_bytes
        return True

    # --- the second walk: what stays

    def _groups(self, end_offset: int) -> Iterator[list[SourceSegment]]:
        """Neighbours that together fit into one segment."""
        task = self._task
        group: list[SourceSegment] = []
        size = index = time_index = 0
        for segment, following in self._with_ends():
            if segment.base_offset >= end_offset:
                break
            if group and (
                size + segment.size_bytes > task.segment_bytes
                or index + segment.index_bytes > task.segment_index_bytes
                or time_index + segment.time_index_bytes > task.segment_index_bytes
                or following - 1 - group[0].base_offset > MAX_RELATIVE_OFFSET
            ):
                yield group
                group, size, index, time_index = [], 0, 0, 0
            group.append(segment)
            size += segment.size_bytes
            index += segment.index_bytes
            time_index += segment.time_index_bytes
        if group:
            yield group

    def _clean_group(self, group: list[SourceSegment], transactions: Transactions) -> CleanedSegment:
        task = self._task
        writer = SegmentWriter(
            self._disk, task.directory, group[0].base_offset, options=self._options,
            buffer_bytes=task.buffer_bytes,
        )  # fmt: skip
        for segment in group:
            with SegmentReader(self._disk, task.directory, segment, task.buffer_bytes) as reader:
                self._clean_segment(reader, writer, transactions)
        for transaction in transactions.kept_aborted:
            writer.append_transaction(transaction)
        transactions.kept_aborted.clear()
        cleaned = writer.finish([segment.base_offset for segment in group])
        self._bytes_written += cleaned.size_bytes
        self._totals += writer.state
        return cleaned

    def _clean_segment(
        self, reader: SegmentReader, writer: SegmentWriter, transactions: Transactions
    ) -> None:
        state = writer.state
        state[layout.POSITION] = 0
        while reader.fill(state):
            before = int(state[layout.POSITION])
            status = filter_kernels.filter_batches(
                reader.buffer, self._map.table, self._latest_offset, self._options, self._producer_ids,
                self._last_offsets, self._map.secret, self._scratch, writer.out, writer.offset_entries,
                writer.time_entries, state,
            )  # fmt: skip
            if status == layout.SPECIAL:
                self._clean_special(reader, writer, transactions)
            elif status == layout.OUT_FULL:
                writer.make_room(int(state[layout.NEEDED]))
            else:
                self._settle(status, reader, state)
            self._throttle(writer.take_unthrottled())
            self._advance(int(state[layout.POSITION]) - before)

    def _clean_special(
        self, reader: SegmentReader, writer: SegmentWriter, transactions: Transactions
    ) -> None:
        """A compressed, transactional or control batch."""
        state = writer.state
        header, batch = reader.batch_at(state)
        now_ms = self._task.now_ms
        horizon = header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else _NO_HORIZON
        try:
            if header.is_control:
                gone = transactions.is_marker_without_batches(header, batch)
                kept = header.records_count
                if gone and horizon != _NO_HORIZON and horizon <= now_ms:
                    kept = 0
                set_horizon = gone and horizon == _NO_HORIZON
                state[layout.RECORDS_READ] += header.records_count
                state[layout.RECORDS_KEPT] += kept
                payload = self._open(header, batch)
                self._scratch[layout.FLAGS, : header.records_count] |= layout.KEEP
                state[layout.KEPT_MAX_TIMESTAMP] = header.max_timestamp
            elif transactions.is_aborted(header):
                state[layout.RECORDS_READ] += header.records_count
                kept, set_horizon, payload = 0, False, np.empty(0, dtype=np.uint8)
            else:
                payload = self._open(header, batch)
                kept = filter_kernels.choose_parsed(
                    self._scratch, header.records_count, self._map.table, self._latest_offset, horizon,
                    now_ms, state,
                )  # fmt: skip
                set_horizon = state[layout.KEPT_TOMBSTONES] > 0 and horizon == _NO_HORIZON
        except InvalidRecord as error:
            raise reader.corrupt(state, str(error)) from error
        position = int(state[layout.POSITION])
        if kept == 0:
            if self._must_stay_empty(header):
                writer.append(
                    _empty(header), last_offset=header.last_offset, max_timestamp=header.max_timestamp
                )
        elif kept == header.records_count and not set_horizon:
            writer.append(batch, last_offset=header.last_offset, max_timestamp=header.max_timestamp)
        else:
            rebuilt, max_timestamp = self._rebuild(header, payload, kept, set_horizon, state)
            writer.append(rebuilt, last_offset=header.last_offset, max_timestamp=max_timestamp)
        state[layout.POSITION] = position + header.size_bytes

    def _rebuild(
        self, header: BatchHeader, payload: layout.Bytes, kept: int, set_horizon: bool, state: layout.Words
    ) -> tuple[bytearray, int]:
        count = header.records_count
        out = np.empty(len(payload) + count * _GROWTH_PER_RECORD, dtype=np.uint8)
        size = filter_kernels.write_kept(payload, self._scratch, count, set_horizon, self._new_horizon, out)
        stored = compression.compress(header.codec, out.data[:size])
        attributes = header.attributes
        base_timestamp = header.base_timestamp
        if set_horizon:
            attributes |= DELETE_HORIZON_BIT
            base_timestamp = self._new_horizon
        max_timestamp = header.max_timestamp
        if not attributes & LOG_APPEND_TIME_BIT:
            max_timestamp = int(state[layout.KEPT_MAX_TIMESTAMP])
        rebuilt = bytearray(HEADER_SIZE + len(stored))
        fields = header._replace(
            batch_length=len(rebuilt) - LENGTH_OVERHEAD, attributes=attributes, base_timestamp=base_timestamp,
            max_timestamp=max_timestamp, records_count=kept,
        )  # fmt: skip
        HEADER.pack_into(rebuilt, 0, *fields)
        rebuilt[HEADER_SIZE:] = stored
        sign(memoryview(rebuilt))
        return rebuilt, max_timestamp

    def _must_stay_empty(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._task.end_offset:
            return True
        producer: ActiveProducer | None = self._producers.get(header.producer_id)
        if producer is None or header.producer_id < 0:
            return False
        if producer.last_offset != NO_OFFSET:
            return header.last_offset == producer.last_offset
        return header.is_control and header.producer_epoch == producer.epoch

    # --- what both walks share

    def _open(self, header: BatchHeader, batch: bytes) -> layout.Bytes:
        """Decompresses a batch and finds its records."""
        payload = self._unfolding.plain(header.codec, memoryview(batch)[HEADER_SIZE:])
        count = header.records_count
        if not 0 <= count <= len(payload):
            raise InvalidRecord(f"{count} records in {len(payload)} bytes")
        self._make_scratch(count)
        found = map_kernels.parse_records(
            payload, 0, count, header.base_offset, header.base_timestamp, self._map.secret, self._scratch
        )
        if not found:
            raise InvalidRecord("its records do not fill it exactly")
        return payload

    def _settle(self, status: int, reader: SegmentReader, state: layout.Words) -> None:
        if status == layout.CORRUPT:
            raise reader.corrupt(state, "not a whole batch with a right CRC and well-formed records")
        if status == layout.SCRATCH_SMALL:
            self._make_scratch(int(state[layout.NEEDED]))
            state[layout.NEEDED] = 0

    def _make_scratch(self, records: int) -> None:
        if records > self._scratch.shape[1]:
            self._scratch = np.empty(
                (layout.SCRATCH_ROWS, 2 ** math.ceil(math.log2(records))), dtype=np.int64
            )

    def _advance(self, size: int) -> None:
        self._throttle(size)
        self._bytes_done += size
        self._report(min(self._bytes_done / self._bytes_to_do, 1.0))

    def _with_ends(self) -> Iterator[tuple[SourceSegment, int]]:
        """Each segment with the base offset of the next."""
        segments = self._task.segments
        ends = [segment.base_offset for segment in segments[1:]]
        return zip(segments, [*ends, self._task.end_offset], strict=True)

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """Of the whole log: the marker of an aborted transaction may be past what is cleaned."""
        directory = self._task.directory
        found: list[AbortedTransaction] = []
        for name, size in self._disk.list_files(directory):
            if size and names.offset_of(name, names.TRANSACTION_INDEX_SUFFIX) is not None:
                found += read_entries(self._disk.read(f"{directory}/{name}"))
        return found


def _empty(header: BatchHeader) -> bytearray:
    batch = bytearray(HEADER_SIZE)
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    fields = header._replace(
        batch_length=HEADER_SIZE - LENGTH_OVERHEAD, attributes=attributes, base_timestamp=-1, records_count=0
    )
    HEADER.pack_into(batch, 0, *fields)
    sign(memoryview(batch))
    return batch
