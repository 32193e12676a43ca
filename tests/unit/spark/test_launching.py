"""Whatever interrupts the start of Spark's JVM ends the process that was being started."""

from __future__ import annotations

import os
import signal
import subprocess
from importlib import import_module
from typing import Any

import pytest
from pyspark import SparkContext

from penstock.spark.internals.gateway import launching

SLEEP = ["sleep", "600"]
gateway: Any = import_module("pyspark.java_gateway")


def interrupt_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no Spark ran in this process."""
    monkeypatch.setattr(SparkContext, "_gateway", None)


def test_a_start_that_fails_ends_the_process() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start_and_fail() -> None:
        with launching():
            started.append(gateway.Popen(SLEEP, stdin=subprocess.PIPE))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_and_fail()
    assert started[0].returncode == -signal.SIGKILL
    assert gateway.Popen is subprocess.Popen, "and PySpark is as it was"


def test_an_interrupt_in_the_moment_of_the_fork_waits_until_the_process_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pids: list[int] = []
    kill = subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: (pids.append(process.pid), kill(process)))
    with pytest.raises(KeyboardInterrupt), launching():
        gateway.Popen(SLEEP, stdin=subprocess.PIPE, preexec_fn=interrupt_the_parent)
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_start_that_succeeds_leaves_the_process_alone() -> None:
    with launching():
        process = gateway.Popen(SLEEP, stdin=subprocess.PIPE)
    assert process.poll() is None
    process.kill()
    process.stdin.close()
    process.wait()
