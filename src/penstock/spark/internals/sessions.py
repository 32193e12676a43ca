"""What a session is just now: whether there is one, whether it has been stopped, whether it is of Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_spark_running() -> bool:
    """In this process, whoever started it and in whichever thread."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def is_stopped(spark: SparkSession) -> bool:
    return spark.sparkContext._jsc is None


def is_remote_session(spark: SparkSession) -> bool:
    """One of Spark Connect has no JVM here, and so nothing to ask it with."""
    return not hasattr(spark, "_jsparkSession")
