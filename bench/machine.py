"""What the figures were taken on."""

import os
import platform
import re
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import confluent_kafka

import penstock
from penstock.spark.connector import JARS
from simulation.apache.java import DEFAULT_VERSION, java_executable


def foreign_load(seconds: float = 1.0) -> float:
    """The share of the cores, 0 to 1, that others keep busy; asked while nothing of ours runs."""
    before = cpu_ticks()
    time.sleep(seconds)
    after = cpu_ticks()
    busy, total = after[0] - before[0], after[1] - before[1]
    return busy / total if total else 0.0


def cpu_ticks() -> tuple[int, int]:
    """Busy and all clock ticks of all cores since boot: user, nice, system, idle, iowait, irq, softirq, steal."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def describe_machine() -> dict[str, str]:
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    processor = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    java = subprocess.run(
        [java_executable(), "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    java_version = re.search(r'version "([^"]+)"', java.stderr)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{int(memory[1]) / 1024 / 1024:.1f} GiB" if memory else "unknown",
        "processor": processor[1] if processor else platform.machine(),
        "kernel": platform.release(),
        "Penstock": penstock.__version__,
        "Apache Kafka": f"{DEFAULT_VERSION} (KRaft, one node, 1 GiB heap)",
        "Python": platform.python_version(),
        "Java": java_version[1] if java_version else "unknown",
        "librdkafka": confluent_kafka.libversion()[0],
        "Spark": f"{version('pyspark')}, its connector {JARS[0].version}",
    }
