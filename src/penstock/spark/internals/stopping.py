"""A query that is stopped without noise.

Tasks that are stopped within their endless batch say so in the log, each with two stack traces. Nothing is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# The same class: where Spark 4.3 has it, and where 4.2 has.
ERROR_NOTIFIERS = (
    "org.apache.spark.util.ErrorNotifier",
    "org.apache.spark.sql.execution.streaming.runtime.ErrorNotifier",
)
LOUD_WHEN_STOPPED = (
    *ERROR_NOTIFIERS,
    # What `foreachBatch` raises when its job is taken away.
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.sql.execution.datasources.v2.AppendDataExec",  # what `foreachBatch` writes
    "org.apache.spark.sql.execution.datasources.v2.DataWritingSparkTask",
)
POLL_S = 0.05
STOP_TIMEOUT_S = 10.0


def stop_quietly(spark: SparkSession, query: StreamingQuery) -> None:
    with _quiet(spark):
        query.stop()
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while has_tasks(spark, str(query.runId)) and time.monotonic() < deadline_s:
            time.sleep(POLL_S)


def has_tasks(spark: SparkSession, run_id: str) -> bool:
    """Whether a run of a query has tasks at work: its id is the group of its jobs."""
    tracker = spark.sparkContext.statusTracker()
    for job_id in tracker.getJobIdsForGroup(run_id):
        job = tracker.getJobInfo(job_id)
        stages = [tracker.getStageInfo(stage_id) for stage_id in (job.stageIds if job is not None else ())]
        if any(stage is not None and stage.numActiveTasks > 0 for stage in stages):
            return True
    return False


@contextmanager
def _quiet(spark: SparkSession) -> Iterator[None]:
    jvm: Any = spark.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    levels = {name: log4j.LogManager.getLogger(name).getLevel() for name in LOUD_WHEN_STOPPED}
    set_level = log4j.core.config.Configurator.setLevel
    for name in levels:
        set_level(name, log4j.Level.OFF)
    try:
        yield
    finally:
        for name, level in levels.items():
            set_level(name, level)
