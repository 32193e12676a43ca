"""Sources made known to Spark, so that several queries may start at once.

Each streaming query of Spark's puts some variables into the environment of its source, which is one map for all queries
of that source, while another query writes its tasks from the same map. A map that grows meanwhile makes a task that
cannot be read: java.io.OptionalDataException, and the query ends. In one where the variables are there already only
values change, and these are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.internals.sessions import is_remote_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

# What PythonStreamingSourceRunner puts there; it does so again, with values, before any Python process is started.
VARIABLES = ("SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE", "SPARK_PYTHON_RUNTIME")


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    if is_remote_session(spark):  # a Spark Connect session: the server makes the map
        spark.dataSource.register(source)
        return
    context = spark.sparkContext
    added = [name for name in VARIABLES if name not in context.environment]
    context.environment.update(dict.fromkeys(added, ""))
    try:
        spark.dataSource.register(source)
    finally:
        for name in added:
            del context.environment[name]
