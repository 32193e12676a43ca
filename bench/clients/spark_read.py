"""Spark reads a whole topic, several times; what it computes is checked and is all that leaves the executors.

`values`: the sum of the values' lengths. `json`: the values parsed into typed columns, and sums over each of them.
"""

import os
import time

from pyspark.sql import DataFrame, SparkSession

from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import reading_options, spark_format, start_session, tree_cpu_seconds

JSON_SCHEMA = "id long, item string, price double, paid boolean"


def frame_of(spark: SparkSession, side: str, what: str, bootstrap: str, topic: str) -> DataFrame:
    options = reading_options(side, bootstrap, topic)
    if what == "json" and side == SPARK:
        options["valueSchema"] = JSON_SCHEMA
    frame = spark.read.format(spark_format(side)).options(**options).load()
    if what == "values":
        return frame.selectExpr("count(*) as records", "sum(length(value)) as checked")
    if side != SPARK:
        frame = frame.selectExpr(f"from_json(cast(value as string), '{JSON_SCHEMA}') as value")
    return frame.selectExpr(
        "count(*) as records",
        "sum(value.id) + sum(length(value.item)) + cast(sum(value.price) as long) + count_if(value.paid) as checked",
    )


def main() -> None:
    options = read_options()
    side = options["side"]
    spark = start_session(side)
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    try:
        for _ in range(options["warm_up_reads"] + options["reads"]):
            cpu_before, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
            # A frame that was asked before would answer from what it has shuffled.
            frame = frame_of(spark, side, options["what"], options["bootstrap"], options["topic"])
            (row,) = frame.collect()
            seconds.append(time.perf_counter() - began)
            cpu_seconds.append(tree_cpu_seconds(os.getpid()) - cpu_before)
            if row.records != options["record_count"]:
                raise SystemExit(f"{row.records} records were read, not {options['record_count']}")
    finally:
        spark.stop()
    measured = slice(options["warm_up_reads"], None)
    print_result(
        seconds=sum(seconds[measured]) / options["reads"],
        cpu_seconds=sum(cpu_seconds[measured]) / options["reads"],
        first_s=seconds[0],
        checked=row.checked,
    )


if __name__ == "__main__":
    main()
