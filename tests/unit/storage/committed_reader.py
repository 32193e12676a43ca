"""A consumer with isolation.level=read_committed, reduced to what it does with an answer to a fetch."""

from collections.abc import Iterator

from penstock.broker.partitions.partition import READ_COMMITTED, Partition
from penstock.records.batch import BatchHeader, iterate_headers
from penstock.records.marker import marker_of
from penstock.records.walk import Record, iterate_records


def read_committed(partition: Partition, offset: int, *, max_bytes: int = 1 << 20) -> list[Record]:
    """All that it hands to its user from an offset on, until it has caught up."""
    found: list[Record] = []
    while True:
        part = partition.read(offset, max_bytes, isolation_level=READ_COMMITTED, at_least_one=True)
        if part is None:
            return found
        raw = part.file.read_at(part.position, part.size_bytes)
        aborted = partition.aborted_in(part, offset)
        for header, records in _without_aborted(raw, aborted):
            assert header.last_offset < partition.last_stable_offset
            found += [record for record in records if record.offset >= offset]
            offset = header.last_offset + 1


def _without_aborted(
    raw: bytes, aborted: list[tuple[int, int]]
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Each whole batch with the records to hand on. The aborted transactions of an answer are known for it alone."""
    waiting = sorted(aborted, key=lambda one: one[1])
    aborting: set[int] = set()
    for position, header in iterate_headers(memoryview(raw)):
        batch = raw[position : position + header.size_bytes]
        while waiting and waiting[0][1] <= header.last_offset:
            aborting.add(waiting.pop(0)[0])
        if header.is_control:
            marker = marker_of(batch, header)
            if marker is not None and not marker.committed:
                aborting.discard(header.producer_id)
            yield header, []
        elif header.is_transactional and header.producer_id in aborting:
            yield header, []
        else:
            yield header, list(iterate_records(batch, header))
