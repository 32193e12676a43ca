"""Files where Spark keeps a checkpoint: in any file system of Hadoop's, with the session's configuration of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Directory:
    """A directory in Spark's file systems, which need not be there. `inside` are names of files and directories in it."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        self._path = self._make_path(location)
        self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def has(self, inside: str) -> bool:
        return bool(self._files.exists(self._at(inside)))

    def names(self, inside: str) -> list[str]:
        """What is in a directory; nothing if it is not there."""
        if not self.has(inside):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._at(inside))]

    def create_empty(self, inside: str) -> None:
        self._files.mkdirs(self._path)
        self._files.create(self._at(inside), True).close()

    def _at(self, inside: str) -> Any:
        return self._make_path(self._path, inside)
