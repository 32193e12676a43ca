"""What a log knows about its idempotent producers: enough to recognise a retry and to refuse a gap.

Per producer id: its epoch and its last five batches, since a producer keeps at most five requests in flight.
The state is a function of the log's batches, so it can always be replayed; snapshot files
(`<offset>.snapshot`: the state just before that offset) keep the replay short. A snapshot remembers only the
last batch of each producer, as Kafka's does.

A producer id that the log does not know may start at any sequence: its earlier batches may have been deleted.
"""

import struct
from collections.abc import Iterable

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CONTROL_BIT, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from penstock.records.crc import crc32c

BATCHES_KEPT = 5
MAX_SEQUENCE = 0x7FFFFFFF

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


class ProducerState:
    __slots__ = ("_producers", "_transactions")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._transactions: dict[int, int] = {}  # producer id → first offset of its open transaction

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._producers

    def check(self, header: BatchHeader) -> tuple[int, int] | None:
        """None when the batch is the next one; (base offset, timestamp) of the stored batch when it is a retry.

        ApiError when it is neither. Only for batches with a producer id, straight from a client.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        base_sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if base_sequence != producer.next_sequence:
                last_sequence = header.last_sequence
                for batch in producer.batches:
                    if batch[0] == base_sequence and batch[1] == last_sequence:
                        return batch[2], batch[4]
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Out of order sequence number for producer {header.producer_id}: {base_sequence} "
                    f"(incoming seq. number), {producer.next_sequence - 1} (current end sequence number)",
                )
        elif header.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}",
            )
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

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """A control batch (commit or abort marker) of a producer is in the log."""
        assert header.attributes & CONTROL_BIT
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
            producer.next_sequence = 0
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.transaction_first_offset = -1
        self._transactions.pop(header.producer_id, None)

    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return min(self._transactions.values()) if self._transactions else None

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

    def clear(self) -> None:
        self._producers.clear()
        self._transactions.clear()

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
