"""Spark reads orders in Avro from a topic, or writes them to one, several times.

Ours: `valueFormat`, with a registry. The other side: the same source and sink with bytes, and what many write for themselves,
an Arrow UDF that calls fastavro for each value.
"""

import io
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.clients.avro_orders import EXPRESSION, FRAME, SCHEMA, SUM, TYPE, registry
from bench.clients.options import print_result, read_options
from bench.servers import SPARK
from bench.spark import CORES, reading_options, start_session, timed


def _decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import fastavro

    parsed = fastavro.parse_schema(SCHEMA)
    kind = pa.struct(
        [
            ("id", pa.int64()), ("customer", pa.string()), ("item", pa.string()), ("count", pa.int32()),
            ("price", pa.float64()), ("paid", pa.bool_()), ("at", pa.timestamp("us", tz="UTC")),
            ("note", pa.string()), ("shop", pa.string()), ("discount", pa.float64()),
        ]
    )  # fmt: skip
    for batch in batches:
        rows = [
            fastavro.schemaless_reader(io.BytesIO(value[len(FRAME) :]), parsed, None)
            for value in batch.column(0).to_pylist()
        ]
        yield pa.RecordBatch.from_arrays([pa.array(rows, kind)], ["value"])


def _encoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import fastavro

    parsed = fastavro.parse_schema(SCHEMA)
    for batch in batches:
        values = []
        for row in batch.column(0).to_pylist():
            out = io.BytesIO()
            out.write(FRAME)
            fastavro.schemaless_writer(out, parsed, row)
            values.append(out.getvalue())
        yield pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])


def frame_of(spark: SparkSession, side: str, bootstrap: str, topic: str, url: str) -> DataFrame:
    options = reading_options(SPARK, bootstrap, topic) | {"columns": "value"}
    if side == SPARK:
        options |= {"valueFormat": "avro", "schema.registry.url": url}
    frame = spark.read.format("penstock").options(**options).load()
    if side == SPARK:
        return frame
    return frame.select("value").mapInArrow(_decoded, f"value struct<{TYPE}>")


def main() -> None:
    options = read_options()
    side, bootstrap, topic, count = (
        options["side"],
        options["bootstrap"],
        options["topic"],
        options["record_count"],
    )
    checked: list[int] = []
    spark = start_session(SPARK)
    with registry() as url:

        def read() -> None:
            frame = frame_of(spark, side, bootstrap, topic, url)
            (row,) = frame.selectExpr("count(*) as records", f"{SUM} as checked").collect()
            if row.records != count:
                raise SystemExit(f"{row.records} records were read, not {count}")
            checked.append(row.checked)

        def write() -> None:
            frame = rows if side == SPARK else rows.mapInArrow(_encoded, "value binary")
            given = {"valueFormat": "avro", "schema.registry.url": url, "use.latest.version": "true"}
            writer = frame.write.format("penstock").mode("append").options(**(given if side == SPARK else {}))
            writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
            writer.option("exactlyOnce", "true").save()

        try:
            if options["what"] == "write":
                rows = spark.range(count, numPartitions=CORES).selectExpr(f"{EXPRESSION} as value")
                rows.cache().count()
            step = write if options["what"] == "write" else read
            times = timed(step, warm_up=options["warm_up_runs"], runs=options["runs"])
        finally:
            spark.stop()
    runs = options["warm_up_runs"] + options["runs"]
    print_result(**times, checked=checked[-1] if checked else 0, record_count=count * runs)


if __name__ == "__main__":
    main()
