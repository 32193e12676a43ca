"""In the driver: a batch to its target, and what is known of batches in the checkpoint's folder."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, Final

from penstock.connect.connectors.spark.spark_settings import FILES
from penstock.connect.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT: Final = 20


class Writer:
    """`given`: the parsed settings, with `options`."""

    def __init__(self, session: SparkSession, given: dict[str, Any]) -> None:
        self._session, self._given = session, given
        self._function: Any = None
        if given["spark.foreach.batch"]:
            module, _, name = given["spark.foreach.batch"].partition(":")
            self._function = getattr(importlib.import_module(module), name)

    def write(self, table: Any, number: int | None) -> None:
        """`number` is None where there is no checkpoint: it may be written twice then."""
        given = self._given
        frame = self._shaped(self._session.createDataFrame(table))
        if self._function is not None:
            self._function(frame, number)
            return
        writer = frame.write.format(given["spark.format"]).options(**given["options"])
        if given["spark.partition.by"]:
            writer = writer.partitionBy(*given["spark.partition.by"])
        path, mode = given["spark.path"], given["spark.write.mode"]
        if number is not None and given["spark.format"].lower() in FILES and path:
            # What an earlier attempt has left goes away.
            path, mode = f"{path.rstrip('/')}/{given['spark.batch.column']}={number}", "overwrite"
        elif number is not None and given["spark.format"].lower() == "delta":
            writer = writer.option("txnAppId", given["name"]).option("txnVersion", str(number))
        writer = writer.mode(mode)
        if given["spark.table"]:
            writer.saveAsTable(given["spark.table"])
        elif path:
            writer.save(path)
        else:
            writer.save()

    def _shaped(self, frame: DataFrame) -> DataFrame:
        ddl = self._given["spark.schema"]
        if not ddl:
            return frame
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        wanted: Any = StructType.fromDDL(ddl)
        return frame.select(
            *[
                (F.col(f"`{field.name}`") if field.name in frame.columns else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in wanted.fields
            ]
        )


class Log:
    """`batches/NUMBER`: a plan; `commits/NUMBER`: it is written. As in a stream's checkpoint, on any file system of Hadoop."""

    def __init__(self, session: SparkSession, location: str) -> None:
        jvm: Any = session.sparkContext._jvm
        self._jvm = jvm
        root = self._jvm.org.apache.hadoop.fs.Path(location)
        self._files = root.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
        self._plans, self._marks = self._path(root, "batches"), self._path(root, "commits")
        for folder in (self._plans, self._marks):
            self._files.mkdirs(folder)

    def last(self) -> tuple[dict[str, Any] | None, bool]:
        plans, marks = self._numbers(self._plans), self._numbers(self._marks)
        if not plans:
            return None, True
        stream = self._files.open(self._path(self._plans, str(plans[-1])))
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return json.loads(text), plans[-1] in marks

    def plan(self, plan: dict[str, Any]) -> None:
        """ConnectError when another task has made a plan of this number: it writes to the same checkpoint."""
        path = self._path(self._plans, str(plan["batch"]))
        if self._files.exists(path):
            raise ConnectError(
                f"batch {plan['batch']} is in the checkpoint already: does another connector use it?"
            )
        self._write(path, json.dumps(plan))

    def mark(self, number: int) -> None:
        self._write(self._path(self._marks, str(number)), "{}")
        for folder in (self._plans, self._marks):
            if number >= KEPT:
                self._files.delete(self._path(folder, str(number - KEPT)), False)

    def _write(self, path: Any, text: str) -> None:
        """It is there as a whole or not at all."""
        draft = self._path(path.getParent(), f".{path.getName()}.draft")
        stream = self._files.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()
        if not self._files.rename(draft, path) and not self._files.exists(path):
            raise ConnectError(f"{path} cannot be written")

    def _numbers(self, folder: Any) -> list[int]:
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        return sorted(int(name) for name in names if name.isdigit())

    def _path(self, folder: Any, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(folder, name)
