"""Spark makes rows and writes them to a topic, several times: the connector at least once, ours exactly once.

The rows are made by Spark's own code and kept in memory before the clock starts, so that only the sink is measured.
"""

import os
import time

from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import CORES, spark_format, start_session, tree_cpu_seconds


def main() -> None:
    options = read_options()
    side, row_count = options["side"], options["row_count"]
    spark = start_session(side)
    seconds: list[float] = []
    cpu_seconds: list[float] = []
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
        for _ in range(options["warm_up_writes"] + options["writes"]):
            cpu_before, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
            writer.save()
            seconds.append(time.perf_counter() - began)
            cpu_seconds.append(tree_cpu_seconds(os.getpid()) - cpu_before)
    finally:
        spark.stop()
    measured = slice(options["warm_up_writes"], None)
    print_result(
        seconds=sum(seconds[measured]) / options["writes"],
        cpu_seconds=sum(cpu_seconds[measured]) / options["writes"],
        first_s=seconds[0],
        row_count=row_count * len(seconds),
    )


if __name__ == "__main__":
    main()
