"""Many small files of a table become few.

Rows stay in their partitions, and none is read twice or lost: the new files take the place of the old ones in one snapshot. Who
writes to the table meanwhile is not disturbed. Offsets of sinks are told again by the new snapshot.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.table import FileScanTask, Table

from penstock.connect.connectors.lake.catalogs import catalog_of, reaching
from penstock.connect.connectors.lake.offsets import kept_offsets
from penstock.connect.connectors.lake.tables import RETRIES, RETRIES_OF_PYICEBERG
from penstock.connect.errors import ConnectError, InvalidConfig

TARGET_BYTES: Final = 128 << 20
LEAST_FILES: Final = 2
ATTEMPTS: Final = 20


class Compacted(NamedTuple):
    files_before: int
    files_after: int
    rows: int


def compact(table: Table, *, target_bytes: int = TARGET_BYTES, least_files: int = LEAST_FILES) -> Compacted:
    """Of files smaller than half of the target, at least so many of a partition. ConnectError when others take them away
    all the time."""
    for attempt in range(1, ATTEMPTS + 1):
        table.refresh()
        before = after = rows = 0
        try:
            for group in _groups(table, target_bytes, least_files):
                made = _rewrite(table, group)
                before, after, rows = before + len(group), after + made[0], rows + made[1]
            return Compacted(before, after, rows)
        except (CommitFailedException, ValidationException):
            time.sleep(RETRIES.delay_s(attempt, random.random))
    raise ConnectError("others change the table all the time")


def _groups(table: Table, target_bytes: int, least_files: int) -> list[list[FileScanTask]]:
    """Of one partition each, and as large together as one file should be."""
    by_partition: dict[str, list[FileScanTask]] = defaultdict(list)
    for task in table.scan().plan_files():
        file = task.file
        # Rows that were deleted are told beside the file: such files are not for us.
        is_plain = not task.delete_files and file.spec_id == table.spec().spec_id
        if is_plain and file.file_size_in_bytes < target_bytes / 2:
            by_partition[repr(file.partition)].append(task)
    groups: list[list[FileScanTask]] = []
    for tasks in by_partition.values():
        group: list[FileScanTask] = []
        size = 0
        for task in sorted(tasks, key=lambda each: each.file.file_path):
            group.append(task)
            size += task.file.file_size_in_bytes
            if size >= target_bytes:
                groups.append(group)
                group, size = [], 0
        groups.append(group)
    return [group for group in groups if len(group) >= least_files]


def _rewrite(table: Table, group: list[FileScanTask]) -> tuple[int, int]:
    scan = table.scan()
    data = ArrowScan(
        table.metadata, table.io, scan.projection(), scan.row_filter, scan.case_sensitive
    ).to_table(group)
    files = list(_dataframe_to_data_files(table.metadata, data, table.io))
    for attempt in range(1, ATTEMPTS + 1):
        table.metadata.properties[RETRIES_OF_PYICEBERG] = "0"
        try:
            with table.transaction() as changing:
                update = changing.update_snapshot(snapshot_properties=kept_offsets(table))
                with update.overwrite() as overwrite:
                    for task in group:
                        overwrite.delete_data_file(task.file)
                    for file in files:
                        overwrite.append_data_file(file)
            return len(files), data.num_rows
        except CommitFailedException:
            # Somebody has added to the table; the files are still there, or ValidationException says that they are not.
            time.sleep(RETRIES.delay_s(attempt, random.random))
            table.refresh()
    raise CommitFailedException("others commit all the time")


def compact_tables(
    given: Mapping[str, str],
    names: Sequence[str],
    *,
    target_bytes: int = TARGET_BYTES,
    least_files: int = LEAST_FILES,
) -> Iterator[tuple[str, Compacted]]:
    """Of the catalog of a sink's configuration; by default the tables that it names. InvalidConfig, ConnectError."""
    catalog = catalog_of(given.get("iceberg.catalog", "iceberg"), given)
    chosen = names or [name.strip() for name in given.get("iceberg.tables", "").split(",") if name.strip()]
    if not chosen:
        raise InvalidConfig("name a table: the configuration has no iceberg.tables")
    try:
        for name in chosen:
            with reaching(f"the table {name}"):
                try:
                    table = catalog.load_table(name)
                except (NoSuchTableError, NoSuchNamespaceError):
                    raise InvalidConfig(f"there is no table {name}") from None
                yield name, compact(table, target_bytes=target_bytes, least_files=least_files)
    finally:
        catalog.close()
