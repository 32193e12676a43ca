"""A driver of its own: copies a topic to another, exactly once, in small batches, and ends when all is copied."""

import sys

import penstock.spark

# Run as a program: what the tests' conftest has is not importable from here.
SMALL_JVM = {
    "spark.driver.memory": "500m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(bootstrap: str, source: str, out: str, checkpoint: str) -> None:
    spark = penstock.spark.session("copy", master="local[2]", **SMALL_JVM)
    stream = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 200)
        .load()
    )
    query = (
        stream.select("key", "value")
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", out)
        .option("exactlyOnce", "true")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
