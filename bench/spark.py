"""Spark with one side or the other: what the programs in clients/spark_*.py and the workloads have in common.

Spark's own connector runs in a plain SparkSession with its jars and no setting but those; ours as its users start it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.servers import SPARK, TUNED_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
ARCHIVE_TIMEOUT_S = 300
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# What those who tune the connector's reading set.
TUNED_READING = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.max.poll.records": "5000",
}


def connector_settings() -> dict[str, str]:
    """The jars, which `make java` collects; SystemExit where it has not."""
    from penstock.spark.connector import connector_jars

    jars = connector_jars()
    if not jars:
        raise SystemExit("Spark's connector is not there: python -m penstock.spark.connector")
    return {"spark.jars": ",".join(map(str, jars))}


def ensure_class_archive() -> None:
    """What makes our sessions start sooner; their users make it once, and so does the bench."""
    from penstock.spark.archive import archive_path

    path = archive_path()
    if path is None or not path.exists():
        command = [sys.executable, "-m", "penstock.spark.archive"]
        subprocess.run(command, timeout=ARCHIVE_TIMEOUT_S, check=True, capture_output=True)


def start_session(side: str, *, shuffle_partitions: int | None = None) -> "SparkSession":
    """`shuffle_partitions` is for the connector only: 200 of them, the default, would be no contest."""
    if side == SPARK:
        import penstock.spark

        return penstock.spark.session("bench", master=f"local[{CORES}]")
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = dict(connector_settings())
    if shuffle_partitions is not None:
        settings["spark.sql.shuffle.partitions"] = str(shuffle_partitions)
    return SparkSession.builder.appName("bench").master(f"local[{CORES}]").config(map=settings).getOrCreate()


def spark_format(side: str) -> str:
    return "penstock" if side == SPARK else "kafka"


def reading_options(side: str, bootstrap: str, topic: str) -> dict[str, str]:
    tuned = TUNED_READING if side == TUNED_CONNECTOR else {}
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", **tuned}


def timed(step: Callable[[], None], *, warm_up: int, runs: int) -> dict[str, float]:
    """Mean times of a step in this process and below it, after `warm_up` that do not count; `first_s` is the first of all."""
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    for _ in range(warm_up + runs):
        cpu_before, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(tree_cpu_seconds(os.getpid()) - cpu_before)
    return {
        "seconds": sum(seconds[warm_up:]) / runs,
        "cpu_seconds": sum(cpu_seconds[warm_up:]) / runs,
        "first_s": seconds[0],
    }


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process, of its descendants that live, and of theirs that have ended and were reaped."""
    parents, ticks = _processes()
    return sum(ticks.get(pid, 0) for pid in _family(root, parents)) / TICKS_PER_S


def tree_memory_bytes(root: int) -> int:
    """Resident memory of a process and of its descendants. What several of them share counts once, by shares."""
    parents, _ = _processes()
    return sum(map(_proportional_bytes, _family(root, parents)))


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """By process: its parent, and the ticks of the CPU that it and its ended children have used."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            stat = (directory / "stat").read_text()
        except OSError:
            continue  # it has just ended; its parent counts it
        # The command name, in parentheses, may hold spaces; utime, stime, cutime and cstime are fields 14 to 17.
        fields = stat[stat.rindex(")") + 2 :].split()
        pid = int(directory.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))
    return parents, ticks


def _family(root: int, parents: Mapping[int, int]) -> set[int]:
    family, last_size = {root}, 0
    while len(family) > last_size:
        last_size = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    return family


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has just ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
