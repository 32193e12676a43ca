"""Streaming queries from topic to topic, until SIGTERM. Prints what it began and when; the last line is its result.

`copy` hands values on, `count` groups by key (each record another, so that every record gives a row) and gives the count
and the latest value. The connector's queries and our micro-batches run as often as they can, Spark's default; our
real-time tier has a trigger of 60 seconds.
"""

import json
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import CORES, reading_options, spark_format, start_session

REAL_TIME_INTERVAL = "60 seconds"
STARTERS = 6  # queries that are started, or stopped, at once


def transform(what: str) -> Callable[[DataFrame], DataFrame]:
    if what == "copy":
        return lambda frame: frame.selectExpr("key", "cast(value as string) as value")
    return lambda frame: (
        frame.selectExpr("key", "cast(value as string) as value")
        .groupBy("key")
        .agg({"value": "max", "*": "count"})
        .selectExpr("key", "concat(`max(value)`, ' ', `count(1)`) as value")
    )


def start_micro_batches(
    spark: SparkSession, options: dict[str, Any], source: str, target: str, checkpoint: str
) -> StreamingQuery:
    side, bootstrap = options["side"], options["bootstrap"]
    stream = (
        spark.readStream.format(spark_format(side)).options(**reading_options(side, bootstrap, source)).load()
    )
    writer = transform(options["what"])(stream).writeStream.format(spark_format(side))
    if options["what"] != "copy":
        writer = writer.outputMode("update")
    return (
        writer.option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
        .start()
    )


def start_real_time(
    spark: SparkSession, options: dict[str, Any], source: str, target: str, checkpoint: str
) -> StreamingQuery:
    import penstock.spark

    stream = penstock.spark.stream(
        spark,
        source=source,
        target=target,
        transform=transform(options["what"]),
        bootstrap=options["bootstrap"],
        checkpoint=checkpoint,
        tier="real-time",
        interval=REAL_TIME_INTERVAL,
        source_options={"startingOffsets": "earliest"},
    )
    query: StreamingQuery = stream.query
    return query


def session_of(options: dict[str, Any]) -> SparkSession:
    if options["side"] == SPARK and options["is_real_time"]:
        import penstock.spark

        return penstock.spark.session("bench", real_time=True)
    return start_session(options["side"], shuffle_partitions=CORES if options["what"] == "count" else None)


def say(event: str, **values: Any) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


def durations_ms(queries: list[StreamingQuery]) -> dict[str, float]:
    """Where the time of a micro-batch goes, as Spark says; the medians of the last batches of all queries."""
    parts: dict[str, list[int]] = {}
    for query in queries:
        for progress in query.recentProgress:
            if progress.numInputRows:
                for name, duration_ms in progress.durationMs.items():
                    parts.setdefault(name, []).append(duration_ms)
    return {f"{name}_ms": statistics.median(each) for name, each in parts.items()}


def main() -> None:
    options = read_options()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    say("begun", monotonic_s=time.monotonic())
    spark = session_of(options)
    start = start_real_time if options["is_real_time"] and options["side"] == SPARK else start_micro_batches
    try:
        with tempfile.TemporaryDirectory(prefix="bench-spark-", ignore_cleanup_errors=True) as directory:
            with ThreadPoolExecutor(STARTERS) as pool:
                waiting = [
                    pool.submit(start, spark, options, source, target, f"{directory}/{number}")
                    for number, (source, target) in enumerate(options["topics"])
                ]
                queries = [each.result() for each in waiting]
            say("started")
            while not ended.wait(0.2):
                if failed := [query.exception() for query in queries if not query.isActive]:
                    raise SystemExit(f"a query has ended: {failed[0]}")
            result = durations_ms(queries)
            with ThreadPoolExecutor(STARTERS) as pool:
                list(pool.map(StreamingQuery.stop, queries))
    finally:
        spark.stop()
    print_result(**result)


if __name__ == "__main__":
    main()
