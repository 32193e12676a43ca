"""The batches and records of a .log file, each as one line."""

import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from penstock.inspection.dump import coordinator_schemas as schemas
from penstock.inspection.dump.coordinator_records import Unreadable, versioned
from penstock.inspection.dump.decoders import Decoder
from penstock.inspection.dump.indexes import Findings
from penstock.inspection.dump.log_bytes import StoredBatch, map_file, stored_batches
from penstock.records.batch import ATTRIBUTES_AT, DELETE_HORIZON_BIT, HEADER_SIZE, MAGIC, BatchHeader
from penstock.records.compression import CODEC_NAMES
from penstock.records.crc import crc32c
from penstock.records.walk import Record, iterate_records

ALL_BYTES = 2**31 - 1
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_CHECKPOINT_NAME = re.compile(r"(\d+)-(\d+)\.checkpoint")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_LEGACY = struct.Struct(">Ibb")  # CRC, magic, attributes
_LEGACY_AT = 12
_QUORUM_RECORDS = {
    2: ("LeaderChange: ", schemas.LEADER_CHANGE),
    3: ("SnapshotHeader ", schemas.SNAPSHOT_HEADER),
    4: ("SnapshotFooter ", schemas.SNAPSHOT_FOOTER),
    5: ("KRaftVersion ", schemas.KRAFT_VERSION),
    6: ("KRaftVoters ", schemas.KRAFT_VOTERS),
}


class LogDump(NamedTuple):
    decode: Decoder | None
    """None: keys and values are not shown."""
    deep: bool
    metadata: bool
    max_bytes: int
    findings: Findings

    def lines(self, path: str) -> Iterator[str]:
        """A line for each batch and record. NotABatch, or InvalidRecord, where the file cannot be read on."""
        name = os.path.basename(path)
        yield from _title(name)
        data = map_file(path)[: self.max_bytes]
        end = 0
        last_offset = -1
        for batch in stored_batches(data, path):
            yield _batch_line(batch)
            if self.deep and batch.header is not None:
                for line, offset in self._record_lines(batch.data, batch.header):
                    if offset != last_offset + 1:
                        self.findings.not_consecutive(path, before=last_offset, after=offset)
                    last_offset = offset
                    yield line
            end = batch.position + batch.size_bytes
        if end < len(data) and self.max_bytes == ALL_BYTES:
            yield f"Found {len(data) - end} invalid bytes at the end of {name}"

    def _record_lines(self, data: memoryview, header: BatchHeader) -> Iterator[tuple[str, int]]:
        time_name = _TIMESTAMP_TYPES[header.timestamp_type]
        for record in iterate_records(data, header):
            line = ""
            if self.metadata:
                line = (
                    f"| offset: {record.offset} {time_name}: {record.timestamp} keySize: {_size(record.key)} "
                    f"valueSize: {_size(record.value)} sequence: {_sequence(header, record)} "
                    f"headerKeys: [{','.join(name for name, _ in record.headers)}]"
                )
                if header.is_control:
                    line += " " + _control(record)
            if self.decode is not None and not header.is_control:
                key, value = self.decode(record)
                before = " " if self.metadata else "| "
                if key is not None:
                    line += f"{before}key: {key}"
                    before = " "
                if value is not None:
                    line += f"{before}payload: {value}"
            yield line, record.offset


def _title(name: str) -> Iterator[str]:
    if name.endswith(".log"):
        yield f"Log starting offset: {int(name.split('.')[0])}"
    elif name == BOOTSTRAP_CHECKPOINT:
        yield "KRaft bootstrap snapshot"
    else:
        found = _CHECKPOINT_NAME.fullmatch(name)
        if found:
            yield f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def _batch_line(batch: StoredBatch) -> str:
    header = batch.header
    if header is None:
        return _legacy_line(batch)
    horizon = "OptionalLong.empty"
    if header.attributes & DELETE_HORIZON_BIT:
        horizon = f"OptionalLong[{header.base_timestamp}]"
    valid = batch.size_bytes >= HEADER_SIZE and crc32c(batch.data[ATTRIBUTES_AT:]) == header.crc
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} isTransactional: {_java(header.is_transactional)} "
        f"isControl: {_java(header.is_control)} deleteHorizonMs: {horizon} position: {batch.position} "
        f"{_TIMESTAMP_TYPES[header.timestamp_type]}: {header.max_timestamp} size: {batch.size_bytes} "
        f"magic: {MAGIC} compresscodec: {_codec(header.codec)} crc: {header.crc} isvalid: {_java(valid)}"
    )


def _legacy_line(batch: StoredBatch) -> str:
    """A message of Kafka 0.10 or older. What is inside a compressed one is not shown."""
    from zlib import crc32

    crc, magic, attributes = _LEGACY.unpack_from(batch.data, _LEGACY_AT)
    time_name, timestamp = "NoTimestampType", -1
    if magic == 1:
        time_name = _TIMESTAMP_TYPES[attributes >> 3 & 1]
        (timestamp,) = struct.unpack_from(">q", batch.data, _LEGACY_AT + 6)
    valid = crc32(batch.data[_LEGACY_AT + 4 :]) == crc
    return (
        f"offset: {batch.offset} position: {batch.position} {time_name}: {timestamp} size: {batch.size_bytes} "
        f"magic: {magic} compresscodec: {_codec(attributes & 7)} crc: {crc} isvalid: {_java(valid)}"
    )


def _control(record: Record) -> str:
    key, value = record.key or b"", record.value or b""
    type_id = int.from_bytes(key[2:4], "big", signed=True)
    if type_id in (0, 1):
        coordinator_epoch = int.from_bytes(value[2:6], "big", signed=True)
        return f"endTxnMarker: {('ABORT', 'COMMIT')[type_id]} coordinatorEpoch: {coordinator_epoch}"
    if type_id in _QUORUM_RECORDS:
        label, schema = _QUORUM_RECORDS[type_id]
        try:
            return label + versioned(schema, value)
        except Unreadable as error:
            return f"{label}({error})"
    return f"controlType: UNKNOWN({type_id})"


def _sequence(header: BatchHeader, record: Record) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _codec(codec: int) -> str:
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"unknown({codec})"


def _java(flag: bool) -> str:
    return "true" if flag else "false"
