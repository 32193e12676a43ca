"""A client of a Connect server: copies a topic exactly once and reads the copy, until a file says that this is all."""

import sys
from pathlib import Path

import penstock.spark


def main(master: str, bootstrap: str, source: str, copy: str, directory: str) -> None:
    spark = penstock.spark.session("copy", master=master)
    query = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", copy)
        .option("exactlyOnce", "true")
        .option("checkpointLocation", f"{directory}/copy")
        .start()
    )
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    everything_is_fed = Path(directory) / "everything-is-fed"
    rows = 0
    while not everything_is_fed.exists():
        query.awaitTermination(0.1)  # its failure is this program's
        found = (
            reader.option("subscribe", copy).option("kafka.isolation.level", "read_committed").load().count()
        )
        if found < rows:
            raise SystemExit(f"the copy had {rows} rows, and now it has {found}")
        rows = found
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
