"""The process of Spark's JVM, which PySpark starts and keeps to itself.

While it starts, PySpark waits for a file in which the JVM tells its port. A wait that is interrupted takes the file's directory
away; the JVM fails to write it, and never gets to where it would see that nobody is there any more. It would stay for ever.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_one_at_a_time = threading.RLock()


def jvm_process(spark: SparkSession) -> subprocess.Popen[bytes]:
    gateway: Any = spark.sparkContext._gateway
    process: subprocess.Popen[bytes] = gateway.proc
    return process


@contextmanager
def launching() -> Iterator[None]:
    """Within, Spark may start its JVM. If that is interrupted, the JVM ends."""
    from pyspark import SparkContext

    java_gateway: Any = import_module("pyspark.java_gateway")
    launched: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            launched.append(self)
            with _interrupts_wait():  # else it may come when there is a process, and nobody knows which
                super().__init__(*arguments, **named)

    with _one_at_a_time:
        given = java_gateway.Popen
        java_gateway.Popen = Recorded
        try:
            yield
        except BaseException:
            if SparkContext._gateway is None:  # else PySpark has it, for the next session
                for process in launched:
                    _end(process)
            raise
        finally:
            java_gateway.Popen = given


def _end(process: subprocess.Popen[bytes]) -> None:
    if getattr(process, "pid", None) is None:  # it was not started
        return
    process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C within comes when the block is over."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(signal.SIGINT, came[0])
