"""What an operator may know about the compaction of a partition."""


class CleanerStatus:
    __slots__ = (
        "bytes_read",
        "bytes_written",
        "dirty_ratio",
        "is_cleanable",
        "last_run_ms",
        "last_seconds",
        "overdue_ms",
        "progress",
        "records_kept",
        "records_removed",
        "runs",
        "uncleanable_reason",
    )

    def __init__(self) -> None:
        self.runs = 0
        self.last_run_ms = -1  # when the last cleaning ended
        self.last_seconds = 0.0  # how long it took
        self.bytes_read = 0  # by it, as are the next three
        self.bytes_written = 0
        self.records_kept = 0
        self.records_removed = 0
        self.dirty_ratio = 0.0
        self.is_cleanable = False  # it is due
        self.overdue_ms = 0  # by how much max.compaction.lag.ms has been passed
        self.progress: float | None = None  # 0.0 … 1.0 of the cleaning that runs
        self.uncleanable_reason: str | None = None
