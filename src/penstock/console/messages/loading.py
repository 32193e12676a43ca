"""One record read again by its place, with what its batch says."""

from __future__ import annotations

import threading

from penstock.client.errors import UserError
from penstock.client.fetching import Range, fetch
from penstock.client.topics import LATEST
from penstock.console.messages.columns import raws
from penstock.console.messages.detail import BatchFacts, Detail
from penstock.console.messages.model import Raw, Source
from penstock.console.messages.reading import COLUMNS, READ_UNCOMMITTED, Reader, no_partition
from penstock.records.batch import BatchHeader, InvalidRecord, iterate_headers
from penstock.records.columnar.decode import Decoder
from penstock.records.compression import CODEC_NAMES
from penstock.records.marker import marker_of


def load(source: Source, topic: str, partition: int, offset: int) -> Detail:
    """Blocks. UserError where there is no such record any more."""
    stopped = threading.Event()
    with Reader(source.bootstrap, source.properties, committed=False, stopped=stopped) as reader:
        described = reader.topic(topic)
        if partition not in described.leaders:
            raise no_partition(described, partition)
        ends = reader.offsets(described, {partition: LATEST})
        if offset < 0 or offset >= (ends.get(partition) or 0):
            raise UserError(
                f"{topic}-{partition} has no record with offset {offset}: it ends at {ends.get(partition) or 0}"
            )
        wanted = {partition: Range(offset, offset + 1)}
        try:
            for piece in fetch(reader.client, described, wanted, isolation_level=READ_UNCOMMITTED):
                decoder = Decoder(topic, COLUMNS)
                found = list(
                    decoder.decode(
                        piece.records, partition=partition, start_offset=offset, end_offset=offset + 1
                    )
                )
                last = decoder.flush()
                found += [] if last is None else [last]
                facts = _facts(piece.records, offset)
                if facts is None:
                    continue
                if found and found[0].num_rows:
                    return Detail(next(raws(found[0], [0])), facts[0])
                if facts[0].control:
                    header = facts[1]
                    return Detail(
                        Raw(partition, offset, header.max_timestamp, False, None, None, ()), facts[0]
                    )
        except InvalidRecord as error:
            raise UserError(f"{topic}-{partition} offset {offset} cannot be read: {error}") from None
    raise UserError(
        f"{topic}-{partition} has no record with offset {offset} any more: it was compacted or deleted"
    )


def _facts(records: memoryview, offset: int) -> tuple[BatchFacts, BatchHeader] | None:
    for position, header in iterate_headers(records):
        if not header.base_offset <= offset <= header.last_offset:
            continue
        control = ""
        if header.is_control:
            marker = marker_of(records[position : position + header.size_bytes], header)
            control = "control" if marker is None else "commit" if marker.committed else "abort"
        codec = CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else str(header.codec)
        facts = BatchFacts(
            header.base_offset, header.last_offset, header.records_count, header.size_bytes, codec,
            header.partition_leader_epoch, header.producer_id, header.producer_epoch, header.base_sequence,
            header.is_transactional, control,
        )  # fmt: skip
        return facts, header
    return None
