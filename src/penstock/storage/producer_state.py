"""What a log knows about its producers: enough to recognise a retry, to refuse a gap, and to say what is undecided.

Per producer id: its epoch, its last five batches, since a producer keeps at most five requests in flight, and where its
open transaction began. The state is a function of the log's batches, so it can always be replayed; snapshot files
(`<offset>.snapshot`: the state just before that offset) keep the replay short. A snapshot remembers only the
last batch of each producer, as Kafka's does.

A producer id that the log does not know may start at any sequence: its earlier batches may have been deleted.
A transaction is begun by its first batch and ended by a marker, whose epoch is that of the batches or, from transaction
version 2 on, the next one, so that nothing of the ended transaction can come late into the next.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CONTROL_BIT, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from penstock.records.crc import crc32c

BATCHES_KEPT = 5
MAX_SEQUENCE = 0x7FFFFFFF
MAX_EPOCH = 0x7FFF
EPOCH_GROWS_FROM = 2
"""The transaction version from which a marker carries the next epoch."""

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = struct.Struct(">hIi")  # version, CRC-32C of everything behind it, number of entries
_SNAPSHOT_CRC_FROM = 6
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of
# the transaction
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """A snapshot file that cannot be believed; the state is replayed from the log instead."""


class _Producer:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "is_recalled",
        "last_timestamp",
        "next_sequence",
        "transaction_first_offset",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        # (base sequence, last sequence, base offset, last offset, timestamp), oldest first
        self.batches: list[tuple[int, int, int, int, int]] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_first_offset = -1
        self.is_recalled = False


class KnownProducer(NamedTuple):
    """For DescribeProducers; -1 where there is none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


class ProducerState:
    __slots__ = ("_producers", "_transactions", "first_undecided_offset")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        # Producer id → first offset of its open transaction, in the order of those offsets.
        self._transactions: dict[int, int] = {}
        self.first_undecided_offset: int | None = None
        """Where the oldest open transaction begins; every fetch asks."""

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._producers

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Of that very epoch: only then its next batch surely belongs to it."""
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.transaction_first_offset >= 0
            and producer.epoch == producer_epoch
        )

    def check(
        self, header: BatchHeader, verified_transaction: bool = False, starts_at_zero: bool = False
    ) -> tuple[int, int] | None:
        """None when the batch is the next one; (base offset, timestamp) of the stored batch when it is a retry.

        ApiError when it is neither. Only for batches with a producer id, straight from a client. `verified_transaction`:
        the coordinator knows that this partition is in the producer's transaction, so the batch may begin it here.
        `starts_at_zero`: a producer that is not known here must be at its first sequence (transaction version 2).
        """
        producer = self._producers.get(header.producer_id)
        if header.attributes & TRANSACTIONAL_BIT and not (
            verified_transaction or self.has_open_transaction(header.producer_id, header.producer_epoch)
        ):
            if producer is not None and header.producer_epoch == producer.epoch:
                duplicate = _duplicate(producer, header)
                if duplicate is not None:
                    return duplicate
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if producer is None:
            if starts_at_zero and header.base_sequence != 0:
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for producer {header.producer_id}: {header.base_sequence} (incoming "
                    "seq. number). Expected sequence 0, because this producer is not known",
                )
            return None
        base_sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if base_sequence != producer.next_sequence:
                duplicate = _duplicate(producer, header)
                if duplicate is not None:
                    return duplicate
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Out of order sequence number for producer {header.producer_id}: {base_sequence} "
                    f"(incoming seq. number), {producer.next_sequence - 1} (current end sequence number)",
                )
        elif header.producer_epoch < producer.epoch:
            raise _old_epoch(header.producer_id, header.producer_epoch, producer.epoch)
        elif base_sequence != 0:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id}: {header.producer_epoch} "
                f"(request epoch), {base_sequence} (seq. number), {producer.epoch} (current producer epoch)",
            )
        if producer.transaction_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id}",
            )
        return None

    def to_recall(self, producer_id: int) -> tuple[int, int, int] | None:
        """(epoch, how many batches, before which offset) are to be read from the log again so that the last five of a producer
        are known, after a snapshot that remembered one; None when they are known, or were looked for.
        """
        producer = self._producers.get(producer_id)
        if producer is None or producer.is_recalled or not 0 < len(producer.batches) < BATCHES_KEPT:
            return None
        return producer.epoch, BATCHES_KEPT - len(producer.batches), producer.batches[0][2]

    def recall(self, producer_id: int, headers: list[BatchHeader]) -> None:
        """Batches of the producer's epoch, oldest first, that are in the log before those that are known."""
        producer = self._producers[producer_id]
        producer.is_recalled = True
        producer.batches[:0] = [
            (each.base_sequence, each.last_sequence, each.base_offset, each.last_offset, each.max_timestamp)
            for each in headers
        ]

    def check_epoch(self, *, producer_id: int, producer_epoch: int) -> None:
        """Of the broker's own batch in a producer's transaction, which has no sequence; ApiError from an old one."""
        producer = self._producers.get(producer_id)
        if producer is not None and producer_epoch < producer.epoch:
            raise _old_epoch(producer_id, producer_epoch, producer.epoch)

    def check_marker(
        self, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """ApiError when the marker is of an older producer or coordinator than the log has seen.

        From transaction version 2 on a marker must bring the next epoch: one with the known epoch would end a transaction
        that has begun since. It may come twice, though, and at the last epoch there is no next.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        if producer_epoch < producer.epoch or (
            transaction_version >= EPOCH_GROWS_FROM
            and producer_epoch == producer.epoch
            and producer.transaction_first_offset >= 0
            and producer_epoch != MAX_EPOCH
        ):
            raise _old_epoch(producer_id, producer_epoch, producer.epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producer {producer_id}: {coordinator_epoch} (zombie), "
                f"{producer.coordinator_epoch} (current)",
            )

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """A data batch with a producer id is in the log at base_offset.

        Nothing is checked: the log is right.
        """
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        base_sequence = header.base_sequence
        delta = header.last_offset_delta
        timestamp = header.max_timestamp
        if base_sequence >= 0:
            last_sequence = (base_sequence + delta) & MAX_SEQUENCE
        else:
            last_sequence = NO_SEQUENCE
        batches = producer.batches
        if len(batches) >= BATCHES_KEPT:
            del batches[0]
        batches.append((base_sequence, last_sequence, base_offset, base_offset + delta, timestamp))
        producer.next_sequence = (last_sequence + 1) & MAX_SEQUENCE
        producer.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_BIT and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self._transactions[producer_id] = base_offset
            if self.first_undecided_offset is None:
                self.first_undecided_offset = base_offset

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> int:
        """A control batch (commit or abort marker) of a producer is in the log. Where the transaction began that it ends;
        -1 when none was open.
        """
        assert header.attributes & CONTROL_BIT
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
            producer.next_sequence = 0
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.transaction_first_offset = -1
        first_offset = self._transactions.pop(producer_id, -1)
        if first_offset >= 0 and first_offset == self.first_undecided_offset:
            self.first_undecided_offset = next(iter(self._transactions.values()), None)
        return first_offset

    def expire(self, *, now_ms: int, expiration_ms: int) -> int:
        """Forgets producers idle for producer.id.expiration.ms, except inside a transaction; returns how
        many.
        """
        idle = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self._producers[producer_id]
        return len(idle)

    def last_offsets(self) -> list[tuple[int, int, int]]:
        """(producer id, last offset of its data or -1, epoch) of each: the batches that compaction must not drop."""
        return [
            (producer_id, producer.batches[-1][3] if producer.batches else -1, producer.epoch)
            for producer_id, producer in self._producers.items()
        ]

    def known(self) -> list[KnownProducer]:
        return [
            KnownProducer(
                producer_id,
                producer.epoch,
                producer.batches[-1][1] if producer.batches else NO_SEQUENCE,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
            for producer_id, producer in self._producers.items()
        ]

    def clear(self) -> None:
        self._producers.clear()
        self._transactions.clear()
        self.first_undecided_offset = None

    def snapshot(self) -> bytes:
        body = bytearray(len(self._producers).to_bytes(4, "big"))
        for producer_id, producer in self._producers.items():
            if producer.batches:
                _, last_sequence, base_offset, last_offset, _ = producer.batches[-1]
                delta = last_offset - base_offset
            else:
                last_sequence, last_offset, delta = NO_SEQUENCE, -1, 0
            body += _SNAPSHOT_ENTRY.pack(
                producer_id, producer.epoch, last_sequence, last_offset, delta, producer.last_timestamp,
                producer.coordinator_epoch, producer.transaction_first_offset,
            )  # fmt: skip
        return struct.pack(">hI", _SNAPSHOT_VERSION, crc32c(body)) + body

    def load_snapshot(self, data: bytes) -> None:
        """Replaces the state; CorruptSnapshot (and an empty state) when the bytes are not a snapshot."""
        self.clear()
        for fields in _read_snapshot(data):
            (
                producer_id,
                epoch,
                last_sequence,
                last_offset,
                delta,
                timestamp,
                coordinator_epoch,
                first_offset,
            ) = fields
            producer = _Producer(epoch)
            producer.last_timestamp = timestamp
            producer.coordinator_epoch = coordinator_epoch
            producer.next_sequence = (last_sequence + 1) & MAX_SEQUENCE
            if last_offset >= 0:
                base_sequence = (last_sequence - delta) & MAX_SEQUENCE if last_sequence >= 0 else NO_SEQUENCE
                producer.batches.append(
                    (base_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
                )
            if first_offset >= 0:
                producer.transaction_first_offset = first_offset
                self._transactions[producer_id] = first_offset
            self._producers[producer_id] = producer
        # The file has them in no order.
        self._transactions = dict(sorted(self._transactions.items(), key=lambda item: item[1]))
        self.first_undecided_offset = next(iter(self._transactions.values()), None)


def _duplicate(producer: _Producer, header: BatchHeader) -> tuple[int, int] | None:
    base_sequence, last_sequence = header.base_sequence, header.last_sequence
    for batch in producer.batches:
        if batch[0] == base_sequence and batch[1] == last_sequence:
            return batch[2], batch[4]
    return None


def _old_epoch(producer_id: int, producer_epoch: int, last_epoch: int) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {producer_id} is {producer_epoch}, which is smaller than the last seen epoch {last_epoch}",
    )


def _read_snapshot(data: bytes) -> Iterable[tuple[int, int, int, int, int, int, int, int]]:
    if len(data) < _SNAPSHOT_HEADER.size:
        raise CorruptSnapshot("shorter than its header")
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    if crc32c(memoryview(data)[_SNAPSHOT_CRC_FROM:]) != crc:
        raise CorruptSnapshot("wrong CRC")
    if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot(f"{len(data)} bytes for {count} entries")
    return _SNAPSHOT_ENTRY.iter_unpack(memoryview(data)[_SNAPSHOT_HEADER.size :])
