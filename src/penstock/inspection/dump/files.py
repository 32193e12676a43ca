"""Any file of a log as lines, by the end of its name."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from penstock.inspection.dump.decoders import Decoder
from penstock.inspection.dump.indexes import Findings, dump_offset_index, dump_time_index
from penstock.inspection.dump.log_file import ALL_BYTES, LogDump
from penstock.inspection.dump.state_files import dump_producer_snapshot, dump_transaction_index

MAX_BATCH_BYTES = 5 * 1024 * 1024


class UnknownFile(Exception):
    """A file of another kind than a log has."""


class DumpOptions(NamedTuple):
    """What is shown of a file, and how much of it is read."""

    decode: Decoder | None = None
    """How keys and values become text (`decoders`); None: they are not shown."""
    deep: bool = False
    """A line for each record, not only for each batch."""
    metadata: bool = True
    """Offset, timestamp, sizes and headers of each record."""
    max_bytes: int = ALL_BYTES
    """How much of a .log file is read."""
    sanity_only: bool = False
    """Of an index: only what the broker checks at its start."""
    verify_only: bool = False
    """Of an index: compare it with its log, and show no entries."""
    max_batch_bytes: int = MAX_BATCH_BYTES
    """The largest batch that an index entry may point to."""


def dump(path: str, options: DumpOptions | None = None, findings: Findings | None = None) -> Iterator[str]:
    """The contents as the lines of Apache Kafka's kafka-dump-log, one after the other as they are read.

    The kinds: .log, .checkpoint, .index, .timeindex, .snapshot, .txnindex; UnknownFile for others. What does not fit
    together is gathered in `findings`. An error of reading ends it: OSError, `NotABatch`, `InvalidRecord`, `Refused`,
    `CorruptSnapshot`.
    """
    options = DumpOptions() if options is None else options
    findings = Findings() if findings is None else findings
    suffix = os.path.splitext("x" + os.path.basename(path))[1]
    if suffix in (".log", ".checkpoint"):
        is_deep = options.deep or options.decode is not None
        yield from LogDump(options.decode, is_deep, options.metadata, options.max_bytes, findings).lines(path)
    elif suffix == ".index":
        yield from dump_offset_index(
            path,
            findings,
            sanity_only=options.sanity_only,
            verify_only=options.verify_only,
            max_bytes=options.max_batch_bytes,
        )
    elif suffix == ".timeindex":
        yield from dump_time_index(
            path, findings, sanity_only=options.sanity_only, verify_only=options.verify_only
        )
    elif suffix == ".snapshot":
        yield from dump_producer_snapshot(path)
    elif suffix == ".txnindex":
        yield from dump_transaction_index(path)
    else:
        raise UnknownFile(path)
