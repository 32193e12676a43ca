"""The same bytes for every server: segment files made once, then put into a stopped server's directory.

A batch holds 64 records of 200 B (key and value) with a key out of `distinct_keys`, uncompressed, of no idempotent
producer; all bytes follow from the arguments. The index files are left to the server, which makes those that are
missing when it next starts.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import crc32c
import numpy as np

from penstock.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE
from penstock.records.build import build_batch
from penstock.storage import checkpoints, names

KEY_BYTES = 16
RECORD_BYTES = 200
BATCH_RECORDS = 64  # so that every offset delta takes one byte, and a batch is about as large as batch.size
BATCHES_PER_WRITE = 1024
DISTINCT_KEYS = 1_000_000
SEED = 20_261_116
TIMESTAMP_MS = 1_760_000_000_000
KEPT_FILES = (names.PARTITION_METADATA,)


@dataclass(frozen=True)
class SegmentFiles:
    """Closed segments and a last one of a single batch, which takes the appends and is never compacted."""

    paths: Sequence[Path]
    size_bytes: int  # without the last one
    active_base_offset: int
    end_offset: int


def template_batch() -> tuple[bytearray, list[int]]:
    """A batch with zeros for keys, and where in it each key begins."""
    noise = np.random.default_rng(SEED).bytes(RECORD_BYTES - KEY_BYTES)
    placeholder = bytes(KEY_BYTES)
    batch = build_batch([(placeholder, noise, (), TIMESTAMP_MS)] * BATCH_RECORDS)
    record_bytes, rest = divmod(len(batch) - HEADER_SIZE, BATCH_RECORDS)
    first = batch.index(placeholder, HEADER_SIZE + 5)
    assert rest == 0, "all records of the batch take the same number of bytes"
    return batch, [first + number * record_bytes for number in range(BATCH_RECORDS)]


def write_segments(
    directory: Path, *, total_bytes: int, segment_bytes: int, distinct_keys: int = DISTINCT_KEYS
) -> SegmentFiles:
    """Fills a new directory; its segments are those of one log that begins at offset 0."""
    directory.mkdir(parents=True)
    template, _ = template_batch()
    batch_bytes = len(template)
    batches_per_segment = max(1, segment_bytes // batch_bytes)
    batch_count = max(1, total_bytes // batch_bytes)
    generator = np.random.default_rng(SEED)
    paths = []
    for first in range(0, batch_count, batches_per_segment):
        count = min(batches_per_segment, batch_count - first)
        paths.append(_write_segment(directory, first, count, distinct_keys, generator))
    paths.append(_write_segment(directory, batch_count, 1, distinct_keys, generator))
    active = batch_count * BATCH_RECORDS
    return SegmentFiles(paths, batch_count * batch_bytes, active, active + BATCH_RECORDS)


def _write_segment(
    directory: Path, first_batch: int, batch_count: int, distinct_keys: int, generator: np.random.Generator
) -> Path:
    template, key_positions = template_batch()
    path = directory / f"{first_batch * BATCH_RECORDS:020}{names.LOG_SUFFIX}"
    columns = (np.array(key_positions)[:, None] + np.arange(KEY_BYTES)).ravel()
    with path.open("wb") as file:
        for at in range(first_batch, first_batch + batch_count, BATCHES_PER_WRITE):
            count = min(BATCHES_PER_WRITE, first_batch + batch_count - at)
            rows = np.tile(np.frombuffer(template, np.uint8), (count, 1))
            offsets = np.arange(at, at + count, dtype=np.int64) * BATCH_RECORDS
            rows[:, :8] = offsets.astype(">i8").view(np.uint8).reshape(count, 8)
            keys = generator.integers(distinct_keys, size=count * BATCH_RECORDS, dtype=np.int64)
            rows[:, columns] = _key_bytes(keys).reshape(count, -1)
            for row in rows:
                row[CRC_AT:ATTRIBUTES_AT] = np.frombuffer(
                    crc32c.crc32c(row[ATTRIBUTES_AT:].data).to_bytes(4, "big"), np.uint8
                )
            file.write(rows.data)
    return path


def _key_bytes(
    keys: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    """Decimal digits with leading zeros: "0000000000000042"."""
    digits = np.empty((len(keys), KEY_BYTES), np.uint8)
    left = keys.copy()
    for column in range(KEY_BYTES - 1, -1, -1):
        digits[:, column] = left % 10 + ord("0")
        left //= 10
    return digits


def put_into(partition_directory: Path, files: SegmentFiles) -> None:
    """Replaces the log of a stopped server's partition by these segments, and forgets what was known of the old.

    Closed segments are never written to again, so all servers and partitions share one copy of their bytes.
    """
    for old in partition_directory.iterdir():
        if old.name not in KEPT_FILES:
            old.unlink()
    *closed, active = files.paths
    for path in closed:
        os.link(path, partition_directory / path.name)
    shutil.copyfile(active, partition_directory / active.name)
    topic, _, index = partition_directory.name.rpartition("-")
    for name in (
        checkpoints.RECOVERY_POINT_CHECKPOINT,
        checkpoints.HIGH_WATERMARK_CHECKPOINT,
        checkpoints.LOG_START_OFFSET_CHECKPOINT,
        checkpoints.CLEANER_CHECKPOINT,
    ):
        _forget(partition_directory.parent / name, f"{topic} {index} ")


def _forget(checkpoint: Path, start_of_line: str) -> None:
    if not checkpoint.exists():
        return
    version, *rest = checkpoint.read_text().splitlines() or ["0"]
    kept = [line for line in rest[1:] if not line.startswith(start_of_line)]
    checkpoint.write_text("\n".join([version, str(len(kept)), *kept]) + "\n")


def drop_from_page_cache(paths: Sequence[Path]) -> None:
    """The next read of these files is one of the device."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
