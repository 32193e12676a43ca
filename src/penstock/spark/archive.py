"""A class archive for Spark's JVM: classes that were loaded and checked once, mapped into memory at the next start.

    python -m penstock.spark.archive [--once]

runs a small stream of every kind and keeps what the JVM loaded for it (some 150 MB, in the user's cache directory). Every
local session after that starts in about half of the time. Nothing depends on it: an archive that does not fit the Java
or the Spark that is there has another name and is not used. With `--once` one that is there is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM_TIMEOUT_S = 60


def cache_directory() -> Path:
    """The user's, for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def archive_path() -> Path | None:
    """Where the archive for this Java and this Spark is, or would be; None without a Java."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    real = Path(java).resolve()
    jars = Path(pyspark.__file__).parent / "jars"
    identity = f"{real}:{real.stat().st_mtime_ns}:{jars}:{jars.stat().st_mtime_ns}:{pyspark.__version__}"
    return cache_directory() / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def java_options() -> str:
    """What the JVM is told to use the archive; nothing if there is none."""
    path = archive_path()
    if path is None or not path.exists():
        return ""
    return f"-XX:SharedArchiveFile={path} -Xshare:auto -Xlog:disable"


def make_archive() -> Path:
    from penstock.spark.internals.gateway import jvm_process
    from penstock.spark.session import session

    path = archive_path()
    if path is None:
        raise SystemExit("penstock: there is no java on the path")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    conf: dict[str, Any] = {
        "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={draft} -Xlog:disable"
    }
    spark = session("penstock-archive", master="local[2]", **conf)
    jvm = jvm_process(spark)
    is_good = False
    try:
        exercise(spark)
        is_good = True
    finally:
        spark.stop()
        # The archive is written while the JVM ends, which is when its input does.
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait()
        if is_good:
            draft.rename(path)
        else:
            draft.unlink(missing_ok=True)
    return path


def exercise(spark: SparkSession) -> None:
    """What most programs do: expressions, an aggregate, a window, JSON, Python functions, a Python source and sink."""
    from pyspark.sql import functions as f

    spark.dataSource.register(_numbers_source())
    numbers = spark.readStream.format("penstock-numbers").load()
    parsed = numbers.select(f.from_json(f.format_string('{"n": %d}', "n"), "n long").alias("j"), "n", "at")
    counted = parsed.withWatermark("at", "1 second").groupBy(f.window("at", "1 second"), "j.n").count()
    copied = numbers.mapInArrow(lambda batches: batches, numbers.schema)
    with tempfile.TemporaryDirectory() as directory:
        for name, frame in (("counted", counted), ("copied", copied)):
            writer = frame.writeStream.format("penstock-numbers")
            query = (
                writer.option("checkpointLocation", f"{directory}/{name}").trigger(availableNow=True).start()
            )
            query.awaitTermination(STREAM_TIMEOUT_S)
    spark.range(10).groupBy((f.col("id") % 2).alias("odd")).count().collect()


def _numbers_source() -> Any:
    """A source and sink that need nothing outside. Made in a function, so that Spark carries it to its workers by value."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        InputPartition,
        WriterCommitMessage,
    )
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

    class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def initialOffset(self) -> dict[str, Any]:
            return {"n": 0}

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            return {"n": 20}

        def prepareForTriggerAvailableNow(self) -> None:
            pass

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
            return [InputPartition((start["n"], end["n"]))]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import datetime

            now = datetime.datetime.now(datetime.UTC)
            return iter([(n, now) for n in range(*partition.value)])

    class Writer(DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return "penstock-numbers"

        def schema(self) -> str:
            return "n long, at timestamp"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

        def streamWriter(self, schema: Any, overwrite: bool) -> Writer:
            return Writer()

    return Numbers


def main() -> None:
    path = archive_path()
    if sys.argv[1:] == ["--once"] and path is not None and path.exists():
        return
    print(f"penstock: {make_archive()}", file=sys.stderr)


if __name__ == "__main__":
    main()
