"""A SparkSession that is ready for topics, and quick on a small machine."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.spark.internals.settings import DAEMON, QUICK_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.spark")

LOG_LEVEL = "spark.log.level"
SETTINGS = {
    **QUICK_SETTINGS,
    **DAEMON,
    LOG_LEVEL: "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
OLDEST_SPARK = (4, 2)
DEFAULT_MASTER = "local[*]"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Hadoop runs chmod for each file of a checkpoint, four for a batch; this way each takes half as long.
QUICK_SPAWN = ("-Djdk.lang.Process.launchMechanism=VFORK",) if sys.platform == "linux" else ()
JARS = "spark.jars"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# All tasks of a real-time query run at once and mostly wait, so that slots are not cores.
REAL_TIME_MASTER = "local[64]"
LONG_TASKS_MASTER = "local[256]"  # each has a slot for itself, and mostly waits
TASK_ATTEMPTS = 4  # what a cluster gives a task; a local master gives it one


def session(
    app_name: str = "penstock",
    master: str = DEFAULT_MASTER,
    *,
    ship: bool | None = None,
    real_time: bool = False,
    long_tasks: bool = False,
    **conf: object,
) -> SparkSession:
    """A SparkSession where `format("penstock")` reads and writes topics.

    `conf` are Spark's settings, which win over ours: session(**{"spark.ui.enabled": True}). Executors on this machine use
    this Python and what is installed in it; others are sent the package and its libraries (shipping.py). `ship` decides
    otherwise: False where executors have them installed, True for a cluster on this machine. A master `sc://host:port` is a
    Spark Connect server, which has its own settings and libraries. `real_time` is for streams in the real-time tier: it
    makes sure of the jars that they need and, locally, of a slot for each of their tasks. `long_tasks` is for tasks that do
    not end: locally it makes sure of slots for many of them.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ModuleNotFoundError(
            "Spark is not installed: pip install 'penstock[spark]'", name="pyspark"
        ) from None
    _check_version(pyspark.__version__)
    from penstock.spark.internals.gateway import launching
    from penstock.spark.internals.interrupts import end_quietly
    from penstock.spark.internals.sessions import is_spark_running

    if long_tasks and master == DEFAULT_MASTER:
        master = LONG_TASKS_MASTER
    if real_time:
        master = _real_time_master(master)
    if real_time or long_tasks:
        # Batches beside the streams get tasks by cores, not by slots.
        conf.setdefault("spark.default.parallelism", os.cpu_count() or 1)
    if master.startswith("sc://"):
        given: dict[str, bool | float | int | str | None] = {
            name: _text(value) for name, value in conf.items()
        }
        spark = SparkSession.builder.appName(app_name).remote(master).config(map=given).getOrCreate()
    else:
        ships = not master.startswith("local") and (not shares_this_machine(master) if ship is None else ship)
        _prepare_environment(master, ships=ships)
        settings: dict[str, bool | float | int | str | None] = {**_settings(master, conf, ships=ships)}
        is_new = not is_spark_running()
        builder = SparkSession.builder.appName(app_name).master(patient(master)).config(map=settings)
        with launching():
            spark = builder.getOrCreate()
        if is_new:
            end_quietly(spark)
        else:
            _warn_of_what_is_late(spark, master, conf)
    register(spark)
    return spark


def _check_version(version: str) -> None:
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SPARK:
        raise RuntimeError(
            f"Penstock works with Spark 4.2 and 4.3, and PySpark {version} is installed: pip install 'penstock[spark]'"
        )


def register(spark: SparkSession) -> None:
    """Makes `format("penstock")` known to a session of your own."""
    from penstock.spark.internals.registering import register_source
    from penstock.spark.internals.threads import write_from_any_thread
    from penstock.spark.source import PenstockDataSource

    register_source(spark, PenstockDataSource)
    write_from_any_thread(PenstockDataSource.name())


def shares_this_machine(master: str) -> bool:
    """Whether executors run where this Python and its packages are.

    Not every master on this machine: the one with the machine's own name may have workers elsewhere.
    """
    if master.startswith("local"):
        return True
    return master.startswith("spark://") and urlsplit(master).hostname in LOCAL_HOSTS


def patient(master: str) -> str:
    """A local master that gives a task as many attempts as a cluster does: local[2] → local[2,4]."""
    if master == "local":
        return f"local[1,{TASK_ATTEMPTS}]"
    found = re.fullmatch(r"local\[(\d+|\*)\]", master)
    return master if found is None else f"local[{found[1]},{TASK_ATTEMPTS}]"


def _real_time_master(master: str) -> str:
    from penstock.spark.connector import COMMAND, connector_jars

    if not master.startswith("sc://") and not connector_jars():
        raise FileNotFoundError(
            f"the real-time tier needs the jars of Spark's Kafka connector (10 MB), which are not there: {COMMAND}"
        )
    return REAL_TIME_MASTER if master == DEFAULT_MASTER else master


def local_settings(master: str) -> dict[str, str]:
    """200 shuffle partitions, Spark's default, are 200 tasks for each batch; one for each core is as many as help."""
    found = re.match(r"local\[(\d+)", master)
    cores = os.cpu_count() or 1
    slots = min(int(found[1]), cores) if found is not None else (1 if master == "local" else cores)
    return {"spark.sql.shuffle.partitions": str(slots)}


def _prepare_environment(master: str, *, ships: bool) -> None:
    """What Spark takes from the environment and not from its settings."""
    from penstock.spark.internals.interpreter import worker_python

    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs every call that Spark's Python side makes
    if shares_this_machine(master) and not ships and "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = worker_python() if master.startswith("local") else sys.executable
    if shares_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it looks for a better one, and complains


def _settings(master: str, conf: Mapping[str, object], *, ships: bool) -> dict[str, str]:
    from penstock.spark.archive import java_options
    from penstock.spark.connector import connector_jars

    settings = dict(SETTINGS)
    if master.startswith("local"):
        settings.update(local_settings(master))
    settings.update({name: _text(value) for name, value in conf.items()})
    if jars := connector_jars():
        settings[JARS] = ",".join(filter(None, [settings.get(JARS), *map(str, jars)]))
    if ships:
        from penstock.spark.workers.shipping import check_python, shipping_settings

        check_python(settings)
        settings.update(shipping_settings(settings))
    if master.startswith("local"):
        options = [java_options(), *QUICK_SPAWN, settings.get(JAVA_OPTIONS, "")]
        if not has_log_settings(options[-1]):
            options.insert(0, f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}")
            if LOG_LEVEL not in conf:
                del settings[LOG_LEVEL]  # the same; but Spark prints a line when it is set
        settings[JAVA_OPTIONS] = " ".join(filter(None, options))
    return settings


def has_log_settings(java_options: str) -> bool:
    """Whether the user has said what Spark logs, where Spark looks for it."""
    import pyspark

    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    places = [os.environ.get("SPARK_CONF_DIR"), Path(home, "conf")]
    return "log4j" in java_options or any(
        Path(place, LOG_SETTINGS.name).exists() for place in places if place
    )


def _warn_of_what_is_late(spark: SparkSession, master: str, conf: Mapping[str, object]) -> None:
    """A program has one Spark. A second call may ask for another than is there, and Spark says nothing."""
    context = spark.sparkContext
    there = {**dict(context.getConf().getAll()), **_sql_settings(spark, conf)}
    late = [
        f"{name}={_text(value)}"
        for name, value in conf.items()
        if name not in (JARS, JAVA_OPTIONS) and there.get(name) != _text(value)
    ]
    if master != DEFAULT_MASTER and context.master not in (master, patient(master)):
        late.append(f"master={master}")
    if late:
        log.warning(
            "Spark runs already, as %s, without %s: spark.stop() first", context.master, ", ".join(late)
        )


def _sql_settings(spark: SparkSession, names: Iterable[str]) -> dict[str, str | None]:
    """Those that a session may change; any other that is given to a session it keeps without effect."""
    return {name: spark.conf.get(name, None) for name in names if name.startswith("spark.sql.")}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
