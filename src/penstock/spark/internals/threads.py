"""Sinks from every thread of a program.

Spark looks for a Python sink in the session that is active in the calling thread, and only the thread that made the
session has one: in all others `frame.writeStream.format("penstock")` would be DATA_SOURCE_NOT_FOUND. Sources are looked
for in the session they were called on. So, whoever says format("penstock") to a writer makes the frame's session active.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

_IS_OURS = "_penstock"


def write_from_any_thread(name: str) -> None:
    """For writers of the format `name`; others stay as they are."""
    for writer in (DataFrameWriter, DataStreamWriter):
        if not hasattr(writer.format, _IS_OURS):
            setattr(writer, "format", _activating(writer.format, name))  # noqa: B010 (mypy knows it as a method)


def _activating(choose: Callable[[Any, str], Any], name: str) -> Callable[[Any, str], Any]:
    @wraps(choose)
    def choose_and_activate(writer: Any, source: str) -> Any:
        if source.lower() == name:
            _activate(writer._spark)
        return choose(writer, source)

    setattr(choose_and_activate, _IS_OURS, True)
    return choose_and_activate


def _activate(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    SparkSession._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)
