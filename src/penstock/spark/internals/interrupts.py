"""Ctrl-C in a program, and the end of one whose streaming queries still run.

Spark's own handler cancels all jobs over a connection that waits for an answer just then, and a program that ends takes
the Python workers away from queries that run: both are screens full of stack traces about nothing. Here Ctrl-C is
KeyboardInterrupt and no more, and when the program ends its queries are stopped before Spark is.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
from contextlib import redirect_stderr, suppress
from types import FrameType
from typing import NoReturn

from pyspark.sql import SparkSession

from penstock.spark.internals.sessions import is_stopped
from penstock.spark.internals.stopping import stop_quietly

_SPARKS_MODULE = "pyspark.core.context"  # where the handler is that Spark installs
ON_INTERRUPT = (
    "KeyboardInterrupt while sending command.",
    "Exception occurred while shutting down connection",
)


def end_quietly(spark: SparkSession) -> None:
    """For a session of this process. A handler of the user's own stays."""
    atexit.register(_stop, spark, os.getpid())
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) != _SPARKS_MODULE:
        return  # the user's, or made in a thread, where Spark installs none

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        # In another thread: this one may be in the middle of a call.
        threading.Thread(target=_cancel_jobs, args=(spark,), daemon=True).start()
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)
        for name in (None, "py4j.clientserver"):
            logging.getLogger(name).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """What py4j logs, with stack traces, before it raises the same."""
    return record.msg not in ON_INTERRUPT


def _cancel_jobs(spark: SparkSession) -> None:
    """A job that nobody waits for any more. Those of streaming queries go on, until somebody stops them."""
    with suppress(Exception):  # it may have been stopped by now
        if not spark.streams.active:
            spark.sparkContext.cancelAllJobs()


def _stop(spark: SparkSession, process_id: int) -> None:
    if os.getpid() != process_id or is_stopped(spark):  # a fork, or stopped already
        return
    # Connections are closed while the other side still writes; each would tell of it.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), suppress(Exception):
        for query in spark.streams.active:
            stop_quietly(spark, query)
        spark.stop()
