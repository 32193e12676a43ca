"""Ctrl-C while Spark's JVM is being started, which leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from penstock.testing.processes import start_process
from tests.spark.under_fire import DEADLINE_S, until

PROGRAM = """
import penstock.spark
penstock.spark.session(master="local[1]")
"""


def commands(session_id: int) -> list[str]:
    """Of all processes that a program has started and that still run."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
            command = path.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended
        state, _, _, session = stat[stat.rindex(")") + 2 :].split()[:4]
        if int(session) == session_id and state != "Z":
            found.append(command)
    return found


@pytest.mark.parametrize("moment", ["bin/spark-class", "org.apache.spark.deploy.SparkSubmit"])
def test_an_interrupt_while_the_jvm_starts_ends_the_jvm(moment: str, tmp_path: Path) -> None:
    driver = start_process([sys.executable, "-c", PROGRAM], name="driver", log_path=tmp_path / "driver.log")
    until(lambda: any(moment in command for command in commands(driver.pid)), moment, driver)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    assert driver.wait(timeout_s=DEADLINE_S) != 0
    deadline_s = time.monotonic() + DEADLINE_S
    while (left := commands(driver.pid)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert left == []
    assert driver.log_text().rstrip().endswith("KeyboardInterrupt")
