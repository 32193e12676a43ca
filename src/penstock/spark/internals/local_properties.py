"""Which query, run and batch a task belongs to: Spark writes it into the task's local properties and says it nowhere else."""

from __future__ import annotations

from pyspark import TaskContext

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"


def current_task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise RuntimeError("rows are written by Spark's tasks, not by the driver")
    return task


def local_property(name: str) -> str | None:
    return current_task().getLocalProperty(name)
