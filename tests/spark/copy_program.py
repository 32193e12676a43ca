"""A driver of its own: copies a topic twice, exactly once each, in small batches, until a file says that this is all.

One copy goes through the sink, the other through `foreachBatch` and a shuffle, so that a task's rows come in any order.
"""

import sys
from pathlib import Path

import penstock.spark

# Run as a program: what the tests' conftest has is not importable from here.
SMALL_JVM = {
    "spark.driver.memory": "500m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(bootstrap: str, source: str, copy: str, shuffled: str, directory: str) -> None:
    spark = penstock.spark.session("copy", master="local[2]", **SMALL_JVM)
    stream = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 150)
        .load()
        .select("key", "value")
    )
    queries = [
        stream.writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", copy)
        .option("exactlyOnce", "true")
        .option("checkpointLocation", f"{directory}/copy")
        .start(),
        stream.repartition(3, "key")
        .writeStream.foreachBatch(penstock.spark.to_topic(shuffled, bootstrap=bootstrap, exactly_once=True))
        .option("checkpointLocation", f"{directory}/shuffled")
        .start(),
    ]
    everything_is_fed = Path(directory) / "everything-is-fed"
    while not everything_is_fed.exists():
        for query in queries:
            query.awaitTermination(0.1)  # its failure is this program's
    for query in queries:
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
