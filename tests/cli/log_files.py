"""Logs written by the storage itself, for the commands that look at files."""

from collections.abc import Callable
from pathlib import Path

from penstock.model.ids import TopicPartition
from penstock.records.batch import read_header
from penstock.records.build import NewRecord, build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions

BASE_MS = 1_700_000_000_000
FIRST = "00000000000000000000"


def write_logs(
    path: Path, logs: dict[str, list[dict[str, object]]], *, records: int = 10, **options: int
) -> None:
    """A data directory as a broker leaves it after a clean stop: per `topic-partition` its batches (build_batch's options)."""
    directory = LogDirectory(OsDisk(), str(path), SystemClock())
    directory.claim(broker_id=1, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    opened = []
    for name, batches in logs.items():
        topic, _, partition = name.rpartition("-")
        log = directory.open_log(
            TopicPartition(topic, int(partition)), LogOptions(**options), topic_id=bytes(range(16))
        )
        opened.append(log)
        for number, batch_options in enumerate(batches):
            batch = memoryview(build_batch(some_records(records, number), **batch_options))  # type: ignore[arg-type]
            log.append(batch, read_header(batch), 0)
    directory.close(opened, {TopicPartition(log.topic, log.partition): log.end_offset for log in opened})


def some_records(count: int, batch: int) -> list[NewRecord]:
    return [
        (
            b"k%d" % number,
            b"v%d" % number,
            [("h", b"1")] if number == 0 else [],
            BASE_MS + batch * 100 + number,
        )
        for number in range(count)
    ]


def edit(path: Path, change: Callable[[bytearray], bytes | None]) -> None:
    """Lets `change` alter the bytes in place, or return others."""
    data = bytearray(path.read_bytes())
    changed = change(data)
    path.write_bytes(data if changed is None else changed)
