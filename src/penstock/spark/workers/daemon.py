"""Spark's Python daemon, with what our tasks need imported before it forks.

Every Python worker of Spark is a fork of a daemon, and imports everything anew: a second for each, in the middle of
the first batch. Here the daemon does it once. One daemon serves one kind of worker, whose module is its argument.

Nothing that is imported here may start a thread: a fork has only the one that forked. OpenBLAS would, and is told not to.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import penstock
from penstock.spark.workers.collecting import set_aside_what_is_loaded
from penstock.spark.workers.shipped import take_in

TASK_WORKER = "pyspark.worker"
TASK_MODULES = (
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "penstock.spark.source",
    "penstock.spark.reading.task",
    "penstock.spark.writing.exactly_once",
)
PLANNING_MODULES = ("penstock.spark.source",)


def preload(worker_module: str) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    modules = TASK_MODULES if worker_module == TASK_WORKER else PLANNING_MODULES
    for module in (worker_module, *modules):
        try:
            importlib.import_module(module)
        except ImportError:
            pass  # whoever really needs it will say so, to the user
    set_aside_what_is_loaded()


if __name__ == "__main__":
    take_in(Path(penstock.__file__).absolute().parents[1])  # before anything with compiled parts is imported
    from pyspark.daemon import manager

    preload(sys.argv[1] if len(sys.argv) > 1 else TASK_WORKER)
    manager()
