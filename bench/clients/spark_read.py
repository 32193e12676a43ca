"""Spark reads a whole topic, several times; what it computes is checked and is all that leaves the executors.

`values`: the sum of the values' lengths. `json`: the values parsed into typed columns, and sums over each of them.
"""

from pyspark.sql import DataFrame, SparkSession

from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import reading_options, spark_format, start_session, timed

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
    checked: list[int] = []
    spark = start_session(side)

    def read() -> None:
        # A frame that was asked before would answer from what it has shuffled.
        frame = frame_of(spark, side, options["what"], options["bootstrap"], options["topic"])
        (row,) = frame.collect()
        if row.records != options["record_count"]:
            raise SystemExit(f"{row.records} records were read, not {options['record_count']}")
        checked.append(row.checked)

    try:
        times = timed(read, warm_up=options["warm_up_reads"], runs=options["reads"])
    finally:
        spark.stop()
    print_result(**times, checked=checked[-1])


if __name__ == "__main__":
    main()
