"""A SparkSession that is ready for topics, and quick on a small machine."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Measured, each by itself, against what Spark does without being told.
SETTINGS = {
    # Spark's default forks a process several times for each batch, to read symbolic links: half of a small batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Python workers over a loopback connection wait for delayed acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "2",
    # How often a query without input looks for some: 10 ms by default, a core for thirty queries.
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
TASK_ATTEMPTS = 4  # what a cluster gives a task; a local master gives it one


def session(app_name: str = "penstock", master: str = "local[*]", **conf: object) -> SparkSession:
    """A SparkSession where `format("penstock")` reads and writes topics.

    `conf` are Spark's settings, which win over ours: session(**{"spark.ui.enabled": True}). Executors on this machine use
    this Python and what is installed in it; others are sent the package, and need its libraries installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ModuleNotFoundError(
            "Spark is not installed: pip install 'penstock[spark]'", name="pyspark"
        ) from None

    _prepare_environment(master)
    settings: dict[str, bool | float | int | str | None] = {**_settings(master, conf)}
    spark = SparkSession.builder.appName(app_name).master(patient(master)).config(map=settings).getOrCreate()
    if not shares_this_machine(master):
        from penstock.spark.shipping import package_archive

        spark.sparkContext.addPyFile(str(package_archive()))
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Makes `format("penstock")` known to a session of your own."""
    from penstock.spark.source import PenstockDataSource

    spark.dataSource.register(PenstockDataSource)


def shares_this_machine(master: str) -> bool:
    """Whether executors run where this Python and its packages are."""
    if master.startswith("local"):
        return True
    host = urlsplit(master).hostname if master.startswith("spark://") else None
    return host is not None and host in (*LOCAL_HOSTS, socket.gethostname())


def patient(master: str) -> str:
    """A local master that gives a task as many attempts as a cluster does: local[2] → local[2,4]."""
    if master == "local":
        return f"local[1,{TASK_ATTEMPTS}]"
    found = re.fullmatch(r"local\[(\d+|\*)\]", master)
    return master if found is None else f"local[{found[1]},{TASK_ATTEMPTS}]"


def local_settings(master: str) -> dict[str, str]:
    """200 shuffle partitions, Spark's default, are 200 tasks for each batch; one for each core is as many as help."""
    found = re.match(r"local\[(\d+)", master)
    cores = os.cpu_count() or 1
    slots = min(int(found[1]), cores) if found is not None else (1 if master == "local" else cores)
    return {"spark.sql.shuffle.partitions": str(slots)}


def _prepare_environment(master: str) -> None:
    """What Spark takes from the environment and not from its settings."""
    from penstock.spark.interpreter import worker_python

    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs every call that Spark's Python side makes
    if shares_this_machine(master) and "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = worker_python() if master.startswith("local") else sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it looks for a better one, and complains


def _settings(master: str, conf: Mapping[str, object]) -> dict[str, str]:
    from penstock.spark.archive import java_options

    settings = dict(SETTINGS)
    if shares_this_machine(master):
        settings["spark.python.daemon.module"] = "penstock.spark.daemon"
    if master.startswith("local"):
        settings.update(local_settings(master))
    settings.update({name: _text(value) for name, value in conf.items()})
    if master.startswith("local") and (archive := java_options()):
        settings[JAVA_OPTIONS] = f"{archive} {settings.get(JAVA_OPTIONS, '')}".strip()
    return settings


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
