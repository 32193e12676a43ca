"""What only Spark's JVM knows: classes that it can load, and how many slots it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def can_load(spark: SparkSession, class_name: str) -> bool:
    jvm: Any = spark.sparkContext._jvm
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(class_name))


def slots(spark: SparkSession) -> int:
    """How many tasks can run at once."""
    context: Any = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
