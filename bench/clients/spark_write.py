"""Spark makes rows and writes them to a topic, several times: the connector at least once, ours exactly once.

The rows are made by Spark's own code and kept in memory before the clock starts, so that only the sink is measured.
"""

from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import CORES, spark_format, start_session, timed


def main() -> None:
    options = read_options()
    side, row_count = options["side"], options["row_count"]
    spark = start_session(side)
    try:
        rows = spark.range(row_count, numPartitions=CORES).selectExpr(
            "cast(id as string) as key", f"lpad(cast(id as string), {options['record_bytes']}, 'x') as value"
        )
        rows.cache().count()
        writer = rows.write.format(spark_format(side)).mode("append")
        writer = writer.options(
            **{"kafka.bootstrap.servers": options["bootstrap"], "topic": options["topic"]}
        )
        if side == SPARK:
            writer = writer.option("exactlyOnce", "true")
        times = timed(writer.save, warm_up=options["warm_up_writes"], runs=options["writes"])
    finally:
        spark.stop()
    print_result(**times, row_count=row_count * (options["warm_up_writes"] + options["writes"]))


if __name__ == "__main__":
    main()
