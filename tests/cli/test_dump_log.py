"""kafka-dump-log's own text. That it is Apache's, byte for byte, is compared in tests/tools/test_files_with_kafka.py."""

import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.groups import records as group_records
from penstock.records.build import build_batch
from tests.cli.conftest import Run
from tests.cli.log_files import BASE_MS, FIRST, edit, write_logs

IDEMPOTENT = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0}
BATCH_LINE = (
    "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 lastSequence: 1 producerId: 7 producerEpoch: 1 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    f"CreateTime: {BASE_MS + 1} size: 87 magic: 2 compresscodec: none crc: {{crc}} isvalid: {{valid}}"
)


class Files(NamedTuple):
    log: Path
    index: Path
    time_index: Path
    snapshot: Path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """One segment of two batches with two records each, an index entry for the second."""
    write_logs(
        tmp_path,
        {"orders-0": [IDEMPOTENT, {**IDEMPOTENT, "base_sequence": 2}]},
        records=2,
        index_interval_bytes=1,
    )
    stem = tmp_path / "orders-0" / FIRST
    return Files(
        stem.with_suffix(".log"),
        stem.with_suffix(".index"),
        stem.with_suffix(".timeindex"),
        tmp_path / "orders-0" / f"{4:020d}.snapshot",
    )


def batch_line(log: Path, *, valid: str = "true") -> str:
    (crc,) = struct.unpack_from(">I", log.read_bytes(), 17)
    return BATCH_LINE.format(crc=crc, valid=valid)


def test_each_batch_is_a_line(run: Run, files: Files) -> None:
    done = run("kafka-dump-log", "--files", str(files.log))
    lines = done.out.splitlines()
    assert lines[:3] == [f"Dumping {files.log}", "Log starting offset: 0", batch_line(files.log)]
    assert len(lines) == 4
    assert (done.err, done.code) == ("", 0)


def test_the_name_with_sh_is_the_same_tool(run: Run, files: Files) -> None:
    assert run("kafka-dump-log.sh", "--files", str(files.log)) == run(
        "kafka-dump-log", "--files", str(files.log)
    )


def test_print_data_log_shows_keys_values_and_header_names(run: Run, files: Files) -> None:
    lines = run("kafka-dump-log", "--files", str(files.log), "--print-data-log").out.splitlines()
    assert lines[3] == (
        f"| offset: 0 CreateTime: {BASE_MS} keySize: 2 valueSize: 2 sequence: 0 headerKeys: [h] key: k0 payload: v0"
    )
    assert lines[4] == (
        f"| offset: 1 CreateTime: {BASE_MS + 1} keySize: 2 valueSize: 2 sequence: 1 headerKeys: [] key: k1 payload: v1"
    )


def test_deep_iteration_shows_records_without_their_contents(run: Run, files: Files) -> None:
    lines = run("kafka-dump-log", "--files", str(files.log), "--deep-iteration").out.splitlines()
    assert lines[3].endswith("sequence: 0 headerKeys: [h]")


def test_skip_record_metadata_leaves_key_and_value(run: Run, files: Files) -> None:
    words = ("--files", str(files.log), "--print-data-log", "--skip-record-metadata")
    assert run("kafka-dump-log", *words).out.splitlines()[3] == "| key: k0 payload: v0"


def test_an_index_is_shown_and_compared_with_its_log(run: Run, files: Files) -> None:
    paths = f"{files.index},{files.time_index}"
    done = run("kafka-dump-log", "--files", paths)
    assert done.out.splitlines() == [
        f"Dumping {files.index}",
        "offset: 3 position: 87",
        f"Dumping {files.time_index}",
        f"timestamp: {BASE_MS + 101} offset: 3",
    ]
    assert done.err == ""
    assert run("kafka-dump-log", "--files", paths, "--verify-index-only").out.splitlines() == [
        f"Dumping {files.index}",
        f"Dumping {files.time_index}",
    ]
    assert run("kafka-dump-log", "--files", paths, "--index-sanity-check").out.splitlines() == [
        f"Dumping {files.index}",
        f"{files.index} passed sanity check.",
        f"Dumping {files.time_index}",
        f"{files.time_index} passed sanity check.",
    ]


def test_what_does_not_fit_is_told_at_the_end(run: Run, files: Files) -> None:
    edit(files.index, lambda data: struct.pack(">ii", 2, 87))
    edit(files.time_index, lambda data: struct.pack(">qi", BASE_MS, 3))
    done = run("kafka-dump-log", "--files", f"{files.index},{files.time_index}", "--verify-index-only")
    assert done.err.splitlines() == [
        f"Mismatches in :{files.index}",
        "  Index offset: 2, log offset: 3",
        f"Found timestamp mismatch in :{files.time_index}",
        f"  Index timestamp: {BASE_MS}, log timestamp: {BASE_MS + 101}",
    ]
    assert done.code == 0


def test_a_damaged_batch_is_not_valid_and_a_torn_one_is_counted(run: Run, files: Files) -> None:
    def damage(data: bytearray) -> bytes:
        data[70] ^= 1
        return bytes(data[:-3])

    edit(files.log, damage)
    lines = run("kafka-dump-log", "--files", str(files.log)).out.splitlines()
    assert lines[2:] == [
        batch_line(files.log, valid="false"),
        f"Found 84 invalid bytes at the end of {FIRST}.log",
    ]


def test_bytes_that_are_no_batch_end_the_dump(run: Run, files: Files) -> None:
    edit(files.log, lambda data: bytes(data) + bytes(100))
    done = run("kafka-dump-log", "--files", str(files.log))
    assert done.err == (
        f"Found record size 0 smaller than minimum record overhead (14) in file {files.log}.\n"
    )
    assert done.code == 1


def test_a_snapshot_lists_its_producers(run: Run, files: Files) -> None:
    assert run("kafka-dump-log", "--files", str(files.snapshot)).out.splitlines()[1:] == [
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
        f"lastTimestamp: {BASE_MS + 101} firstSequence: 2 lastSequence: 3 lastOffset: 3 offsetDelta: 1 "
        f"timestamp: {BASE_MS + 101}"
    ]


def test_a_snapshot_with_a_wrong_crc_is_told(run: Run, files: Files) -> None:
    edit(files.snapshot, lambda data: bytes(data[:-1]) + b"\1")
    done = run("kafka-dump-log", "--files", str(files.snapshot))
    assert done.err.startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: ")
    assert done.code == 0


def test_a_transaction_index_lists_what_was_aborted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.txnindex"
    path.write_bytes(struct.pack(">hqqqq", 0, 1, 2, 3, 4))
    assert run("kafka-dump-log", "--files", str(path)).out.splitlines()[1:] == [
        "version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4"
    ]


def test_offsets_are_decoded_as_kafka_prints_them(run: Run, tmp_path: Path) -> None:
    key = group_records.write_offset_key(group_records.OffsetKey("g1", "orders", 2))
    value = group_records.write_offset(
        group_records.CommittedOffset(120, 3, "x", BASE_MS, topic_id=bytes(range(16)))
    )
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(
        build_batch([(key, value, [], BASE_MS), (key, None, [], BASE_MS), (b"\0\x63", b"", [], BASE_MS)])
    )
    lines = run("kafka-dump-log", "--files", str(path), "--offsets-decoder").out.splitlines()[3:]
    shown = '{"type":"1","data":{"group":"g1","topic":"orders","partition":2}}'
    assert lines[0].endswith(
        f'key: {shown} payload: {{"version":"4","data":{{"offset":120,"leaderEpoch":3,"metadata":"x",'
        f'"commitTimestamp":{BASE_MS},"topicId":"AAECAwQFBgcICQoLDA0ODw"}}}}'
    )
    assert lines[1].endswith(f"key: {shown} payload: <DELETE>")
    assert lines[2].endswith("key: Unknown record type 99 at offset 2, skipping.")


def test_max_bytes_stops_before_a_batch_that_passes_it(run: Run, files: Files) -> None:
    out = run("kafka-dump-log", "--files", str(files.log), "--max-bytes", "100").out
    assert out.count("baseOffset: ") == 1


def test_numbers_are_decoded_by_the_class_that_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(build_batch([((5).to_bytes(4, "big"), (-9).to_bytes(8, "big", signed=True), [], 1)]))
    tools = "org.apache.kafka.tools.api."
    classes = (
        "--key-decoder-class",
        f"{tools}IntegerDecoder",
        "--value-decoder-class",
        f"{tools}LongDecoder",
    )
    assert run("kafka-dump-log", "--files", str(path), *classes).out.endswith("key: 5 payload: -9\n")


def test_a_file_that_is_not_there_is_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    done = run("kafka-dump-log", "--files", str(path))
    assert done.err == f"kafka-dump-log: cannot read {path}: No such file or directory\n"
    assert done.code == 1


def test_an_unknown_file_is_passed_over(run: Run) -> None:
    assert run("kafka-dump-log", "--files", "notes.txt") == (
        "Dumping notes.txt\n",
        "Ignoring unknown file notes.txt\n",
        0,
    )
