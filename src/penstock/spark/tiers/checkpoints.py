"""In which tier a checkpoint was begun: a file in its directory says so, wherever Spark keeps it.

The tiers write the same kinds of files with other contents, and neither goes on where the other stopped.
"""

from __future__ import annotations

from typing import Any, Literal

from pyspark.sql import SparkSession

Tier = Literal["real-time", "micro-batch"]
TIERS: tuple[Tier, Tier] = ("real-time", "micro-batch")
MARK = "penstock-tier"
OFFSETS = "offsets"  # Spark's log of batches in a checkpoint


class Checkpoint:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        jvm: Any = spark.sparkContext._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        self._path = self._make_path(location)
        self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def tier(self) -> Tier | None:
        """None for a checkpoint that is still to be made. One that was begun without us is of micro-batches."""
        for tier in TIERS:
            if self._files.exists(self._mark(tier)):
                return tier
        return "micro-batch" if self._has_batches() else None

    def begin(self, tier: Tier) -> None:
        self._files.mkdirs(self._path)
        self._files.create(self._mark(tier), True).close()

    def _has_batches(self) -> bool:
        """A query that was refused leaves directories behind, but no batch."""
        offsets = self._make_path(self._path, OFFSETS)
        return self._files.exists(offsets) and any(
            status.getPath().getName().isdigit() for status in self._files.listStatus(offsets)
        )

    def _mark(self, tier: Tier) -> Any:
        return self._make_path(self._path, f"{MARK}-{tier}")
