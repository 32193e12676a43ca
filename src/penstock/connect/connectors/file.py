"""Lines of a file to a topic, and records of topics to the lines of a file.

Kafka's FileStreamSource and FileStreamSink. A line counts when its end is there: half a line waits for its newline. The offset
of the source is {"filename": …} → {"position": bytes}.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final, TextIO

import penstock
from penstock.connect.data.schema import STRING
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError
from penstock.connect.interface import (
    Config,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourcePlace,
    SourceTask,
    TopicPlace,
)
from penstock.connect.records import SinkRecord, SourceRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings

FILENAME: Final = "filename"
POSITION: Final = "position"
CHUNK_BYTES: Final = 256 * 1024
WAIT_S: Final = 0.2
MISSING_WAIT_S: Final = 1.0

SOURCE_SETTINGS: Final = Settings(
    Setting("file", Kind.STRING, "The file to read; without one, standard input.", default=None, importance=HIGH),
    Setting("topic", Kind.STRING, "The topic that the lines go to.", importance=HIGH),
    Setting("batch.size", Kind.INT, "How many lines are read at a time.", default=2000, importance=LOW),
)  # fmt: skip
SINK_SETTINGS: Final = Settings(
    Setting("file", Kind.STRING, "The file to write, at its end; without one, standard output.", default=None,
            importance=HIGH),
)  # fmt: skip


class FileSourceTask(SourceTask):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = ("org.apache.kafka.connect.file.FileStreamSourceTask",)

    def start(self) -> None:
        self._path: str | None = self.values["file"] or None
        self._topic: str = self.values["topic"]
        self._batch: int = self.values["batch.size"]
        self._partition = {FILENAME: self._path} if self._path else None
        self._file: BinaryIO | None = None
        self._position = 0
        self._rest = b""
        self._lines: list[bytes] = []
        if self._path is None:
            self._file = sys.stdin.buffer
            return
        found = self.context.offset({FILENAME: self._path})
        if found is not None:
            position = found.get(POSITION)
            if not isinstance(position, int):
                raise ConnectError("Offset position is the incorrect type")
            self._position = position

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._file is None and not self._open():
            self.context.wait(MISSING_WAIT_S)
            return None
        if not self._lines and not self._read():
            self.context.wait(WAIT_S)
            return None
        taken, self._lines = self._lines[: self._batch], self._lines[self._batch :]
        now_ms = int(time.time() * 1000)
        topic, partition, position = self._topic, self._partition, self._position
        records = []
        for line in taken:
            position += len(line)
            end = 2 if line.endswith(b"\r\n") else 1
            text = line[:-end]
            offset = None if partition is None else {POSITION: position}
            records.append(
                SourceRecord(
                    partition,
                    offset,
                    topic,
                    text.decode("utf-8", "replace"),
                    value_schema=STRING,
                    timestamp_ms=now_ms,
                )
            )
        self._position = position
        return records

    def _open(self) -> bool:
        assert self._path is not None
        try:
            self._file = open(self._path, "rb", buffering=0)  # noqa: SIM115 -- `stop` closes it
        except FileNotFoundError:
            self.log.warning("the file %s is not there yet", self._path)
            return False
        except OSError as error:
            raise ConnectError(f"the file {self._path} cannot be read: {error.strerror}") from error
        self._file.seek(self._position)
        return True

    def _read(self) -> bool:
        """Whether there is a whole line now."""
        assert self._file is not None
        if self._file is sys.stdin.buffer:
            found = sys.stdin.buffer.readline()
        else:
            found = self._file.read(CHUNK_BYTES)
        if not found:
            return False
        lines = (self._rest + found).splitlines(keepends=True)
        # A carriage return at the end may be the first half of an end of line.
        self._rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        self._lines = lines
        return bool(lines)

    def stop(self) -> None:
        if self._file is not None and self._file is not sys.stdin.buffer:
            self._file.close()
        self._file = None


class FileSource(SourceConnector):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    task_class = FileSourceTask

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        return bool(given.get("file"))

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        if not given.get("file"):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified: standard input has none."
            )
        for partition, offset in offsets.items():
            if offset is None:
                continue  # what is taken away may be anything
            if POSITION not in offset:
                raise ConnectError(f"Offset objects should either be null or contain the key '{POSITION}'")
            position = offset[POSITION]
            if isinstance(position, bool) or not isinstance(position, int):
                raise ConnectError(
                    f"The value for the '{POSITION}' key in the offset is expected to be a Long value"
                )
            if position < 0:
                raise ConnectError(
                    f"The value for the '{POSITION}' key in the offset should be a non-negative value"
                )
            if partition is None:
                raise ConnectError("Partition objects cannot be null")
            if FILENAME not in partition:
                raise ConnectError(f"Partition objects should contain the key '{FILENAME}'")
        return True


class FileSinkTask(SinkTask):
    version = penstock.__version__
    settings = SINK_SETTINGS
    java_names = ("org.apache.kafka.connect.file.FileStreamSinkTask",)

    def start(self) -> None:
        path: str | None = self.values["file"] or None
        self._file: TextIO = sys.stdout
        if path is not None:
            try:
                self._file = open(path, "a", encoding="utf-8", newline="")  # noqa: SIM115 -- `stop` closes it
            except OSError as error:
                raise ConnectError(f"the file {path} cannot be written: {error.strerror}") from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._file.write("".join([f"{java_text(record.value)}\n" for record in records]))

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        self._file.flush()
        if self._file is not sys.stdout:
            os.fdatasync(self._file.fileno())

    def stop(self) -> None:
        if self._file is not sys.stdout:
            self._file.close()


class FileSink(SinkConnector):
    version = penstock.__version__
    settings = SINK_SETTINGS
    java_names = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    task_class = FileSinkTask

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        return True


def java_text(value: Any) -> str:
    """A value as Java prints it: {a=1, b=[true, null]}."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Struct):
        said = [f"{name}={java_text(one)}" for name, one in value.items() if one is not None]
        return f"Struct{{{','.join(said)}}}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{java_text(name)}={java_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java_text, value)) + "]"
    return str(value)
