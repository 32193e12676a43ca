"""Spark's Python daemon, with what our tasks need imported before it forks.

Every Python worker of Spark is a fork of a daemon, and imports everything anew: a second for each, in the middle of
the first batch. Here the daemon does it once. Only those that have tasks are ours: what plans a query has Spark's own daemon.

Nothing that is imported here may start a thread: a fork has only the one that forked. OpenBLAS would, and is told not to.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from penstock.spark.workers.collecting import set_aside_what_is_loaded
from penstock.spark.workers.shipped import take_in

HUNG_UP = 1  # the code with which a worker ends after any exception
TASK_MODULES = (
    "pyspark.worker",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "penstock.spark.source",
    "penstock.spark.reading.task",
    "penstock.spark.writing.exactly_once",
    "penstock.spark.tasks.program",
    "penstock.streams.running.worker",
    "penstock.connect.tasks.program",
    "penstock.connect.tasks.source",
    "penstock.connect.tasks.sink",
    "penstock.connect.plugins",
    "penstock.connect.converters.json",
    "penstock.connect.converters.simple",
    "penstock.connect.converters.header",
    "penstock.connect.transforms.chain",
    "penstock.connect.connectors.file",
)


def preload() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in TASK_MODULES:
        try:
            importlib.import_module(module)
        except ImportError:
            pass  # whoever really needs it will say so, to the user
    set_aside_what_is_loaded()


def without_noise(worker: Callable[..., int]) -> Callable[..., int]:
    """Spark hangs up on workers that have nothing to do any more; each would print a stack trace about it."""

    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except BrokenPipeError:
            return HUNG_UP

    return run


if __name__ == "__main__":
    take_in(Path(penstock.__file__).absolute().parents[1])  # before anything with compiled parts is imported
    import pyspark.daemon

    preload()
    spark_daemon: Any = pyspark.daemon
    spark_daemon.worker = without_noise(spark_daemon.worker)
    spark_daemon.manager()
