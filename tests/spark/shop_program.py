"""A user's program: the same for every master. Prints what it read and wrote, and where its functions ran."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

import penstock.spark

# Run as a program: what the tests' conftest has is not importable from here.
SMALL_JVM = {
    "spark.driver.memory": "500m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def shout(value: bytes) -> str:
    return bytes(value).decode().upper()


def place(value: bytes) -> str:
    """Who computes this: the Python, the package, a library, and how many walks numba compiled instead of loading."""
    import sys

    import numba

    import penstock
    from penstock.records.columnar import kernels

    walks = [each for each in vars(kernels).values() if hasattr(each, "stats")]
    compiled = sum(sum(each.stats.cache_misses.values()) for each in walks)
    return json.dumps([sys.prefix, penstock.__file__, numba.__file__, compiled])


def read(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()


def main(master: str, ship: str, bootstrap: str, source: str, out: str, checkpoint: str) -> None:
    ships = {"ship": True, "do-not-ship": False}.get(ship)
    # A Connect server has its own.
    settings: dict[str, Any] = {} if master.startswith("sc://") else SMALL_JVM
    spark = penstock.spark.session("shop", master=master, ship=ships, **settings)
    orders = read(spark, bootstrap, source)
    rows = orders.selectExpr("partition", "offset", "cast(value as string) as text")
    found = sorted(tuple(row) for row in rows.collect())
    stream = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        stream.select("key", udf(shout, StringType(), useArrow=False)("value").alias("value"))
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", out)
        .option("exactlyOnce", "true")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    written = sorted(bytes(row.value).decode() for row in read(spark, bootstrap, out).collect())
    print(json.dumps([found, written]))
    print(orders.select(udf(place, StringType(), useArrow=False)("value")).collect()[0][0])


if __name__ == "__main__":
    main(*sys.argv[1:])
