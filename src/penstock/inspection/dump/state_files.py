"""The two small files beside a log: producer snapshots and transaction indexes."""

import struct
from collections.abc import Iterator

from penstock.records.crc import crc32c

SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = struct.Struct(">hIi")  # version, CRC-32C of everything behind it, number of entries
_CRC_FROM = 6
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of
# the transaction
_PRODUCER = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")  # version, producer id, first, last and last stable offset
ABORTED_VERSION = 0  # the only one; like Kafka's tool, this one does not look whether the file says so


class CorruptSnapshot(Exception):
    """A producer snapshot that cannot be read; the message is Kafka's."""


def dump_producer_snapshot(path: str) -> Iterator[str]:
    """A line for each producer, in Kafka's words. CorruptSnapshot where something is wrong with the file."""
    with open(path, "rb") as file:
        data = file.read()
    problem = _snapshot_problem(data)
    if problem:
        raise CorruptSnapshot(problem)
    _, _, count = _SNAPSHOT_HEADER.unpack_from(data)
    entries = data[_SNAPSHOT_HEADER.size :][: count * _PRODUCER.size]
    for fields in _PRODUCER.iter_unpack(entries):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = (
            fields
        )
        transaction = f"OptionalLong[{first_offset}]" if first_offset >= 0 else "OptionalLong.empty"
        line = (
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
            f"currentTxnFirstOffset: {transaction} lastTimestamp: {timestamp}"
        )
        if last_offset >= 0:
            line += (
                f" firstSequence: {_first_sequence(last_sequence, delta)} lastSequence: {last_sequence} "
                f"lastOffset: {last_offset} offsetDelta: {delta} timestamp: {timestamp}"
            )
        yield line


def _first_sequence(last_sequence: int, delta: int) -> int:
    return (last_sequence - delta) & 0x7FFFFFFF if last_sequence < delta else last_sequence - delta


def _snapshot_problem(data: bytes) -> str | None:
    if len(data) >= 2:
        version = int.from_bytes(data[:2], "big", signed=True)
        if version != SNAPSHOT_VERSION:
            return f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}"
    if len(data) < _SNAPSHOT_HEADER.size:
        return "Snapshot failed schema validation: null"
    _, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    left = len(data) - _SNAPSHOT_HEADER.size
    if count > left:
        return (
            f"Snapshot failed schema validation: Tried to allocate a collection of size {count}, but there are only "
            f"{left} bytes remaining."
        )
    if count < 0:
        return "Snapshot failed schema validation: non-nullable field producerEntries was serialized as null"
    if count * _PRODUCER.size > left:
        return "Snapshot failed schema validation: null"
    computed = crc32c(memoryview(data)[_CRC_FROM:])
    if computed != crc:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
    return None


def dump_transaction_index(path: str) -> Iterator[str]:
    """A line for each aborted transaction, in Kafka's words."""
    with open(path, "rb") as file:
        data = file.read()
    whole = len(data) - len(data) % _ABORTED.size
    for _, producer_id, first, last, stable in _ABORTED.iter_unpack(data[:whole]):
        yield (
            f"version: {ABORTED_VERSION} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )
