"""In which tier a checkpoint was begun: a file in its directory says so, wherever Spark keeps it.

The tiers write the same kinds of files with other contents, and neither goes on where the other stopped.
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import SparkSession

from penstock.spark.internals.file_systems import Directory

Tier = Literal["real-time", "micro-batch"]
TIERS: tuple[Tier, Tier] = ("real-time", "micro-batch")
MARK = "penstock-tier"
OFFSETS = "offsets"  # Spark's log of batches in a checkpoint


class Checkpoint:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        self._directory = Directory(spark, location)

    def tier(self) -> Tier | None:
        """None for a checkpoint that is still to be made. One that was begun without us is of micro-batches."""
        for tier in TIERS:
            if self._directory.has(_mark(tier)):
                return tier
        return "micro-batch" if self._has_batches() else None

    def begin(self, tier: Tier) -> None:
        self._directory.create_empty(_mark(tier))

    def _has_batches(self) -> bool:
        """A query that was refused leaves directories behind, but no batch."""
        return any(name.isdigit() for name in self._directory.names(OFFSETS))


def _mark(tier: Tier) -> str:
    return f"{MARK}-{tier}"
