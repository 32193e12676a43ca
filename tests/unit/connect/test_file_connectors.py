"""Lines of files."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from penstock.connect import ConnectError, SinkRecord, SourceRecord
from penstock.connect.connectors.file import FileSink, FileSinkTask, FileSource, FileSourceTask, java_text
from penstock.connect.data import INT64, STRING, struct


class Context:
    def __init__(self, offset: dict[str, Any] | None = None) -> None:
        self._offset = offset
        self.waited = 0

    def offset(self, partition: Any) -> dict[str, Any] | None:
        return self._offset

    def wait(self, seconds: float) -> None:
        self.waited += 1


def source(path: Path, offset: dict[str, Any] | None = None, **more: str) -> FileSourceTask:
    task = FileSourceTask()
    task.configure({"file": str(path), "topic": "t", **more})
    task.log = logging.getLogger("tests")
    task.context = Context(offset)  # type: ignore[assignment]
    task.start()
    return task


def told(records: Any) -> list[tuple[str, Any]]:
    found: list[SourceRecord] = list(records or ())
    return [
        (record.value, None if record.source_offset is None else record.source_offset["position"])
        for record in found
    ]


def test_lines_come_with_where_the_next_one_begins(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes("one\r\ntwo\n\ngrüße\nhalf".encode())
    task = source(file)
    assert told(task.poll()) == [("one", 5), ("two", 9), ("", 10), ("grüße", 18)]
    assert not task.poll()
    with file.open("a") as more:
        more.write(" done\n")
    assert told(task.poll()) == [("half done", 28)]
    task.stop()


def test_a_carriage_return_at_the_end_waits_for_what_follows(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\rb\r")
    task = source(file)
    assert told(task.poll()) == [("a", 2)]
    with file.open("ab") as more:
        more.write(b"\nc\n")
    assert told(task.poll()) == [("b", 5), ("c", 7)]
    task.stop()


def test_only_one_end_of_line_is_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x\r\r\n\r\n")
    task = source(file)
    assert told(task.poll()) == [("x", 2), ("", 4), ("", 6)]
    task.stop()


def test_it_goes_on_at_its_offset_in_batches(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\nthree\nfour\n")
    task = source(file, {"position": 4}, **{"batch.size": "2"})
    assert told(task.poll()) == [("two", 8), ("three", 14)]
    assert told(task.poll()) == [("four", 19)]
    task.stop()


def test_a_file_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    task = source(tmp_path / "f")
    assert task.poll() is None
    (tmp_path / "f").write_text("x\n")
    assert told(task.poll()) == [("x", 2)]
    task.stop()
    with pytest.raises(ConnectError, match="incorrect type"):
        source(tmp_path / "f", {"position": "4"})


def test_offsets_that_cannot_be_are_refused() -> None:
    connector, given = FileSource(), {"file": "f"}
    from penstock.connect.running.offsets import SourcePartition

    place = SourcePartition({"filename": "f"})
    assert connector.alter_offsets(given, {place: {"position": 3}})
    assert connector.alter_offsets(given, {SourcePartition({"x": 1}): None})
    for offset in ({"position": -1}, {"position": "1"}, {"position": True}, {"x": 1}):
        with pytest.raises(ConnectError):
            connector.alter_offsets(given, {place: offset})
    with pytest.raises(ConnectError, match="unspecified"):
        connector.alter_offsets({}, {place: {"position": 3}})
    assert connector.exactly_once_support(given) is True
    assert connector.exactly_once_support({}) is False


def test_a_sink_writes_values_as_kafkas_does(tmp_path: Path) -> None:
    task = FileSinkTask()
    task.configure({"file": str(tmp_path / "f")})
    task.start()
    schema = struct("s", id=INT64, note=STRING.optional())
    values = ["text", None, True, 1.5, {"a": 1, "b": [True, None]}, schema.new(id=1)]
    task.put([SinkRecord("t", 0, offset, value) for offset, value in enumerate(values)])
    task.flush({("t", 0): 6})
    assert (tmp_path / "f").read_text().splitlines() == [
        "text", "null", "true", "1.5", "{a=1, b=[true, null]}", "Struct{id=1}",
    ]  # fmt: skip
    task.stop()
    task.configure({"file": str(tmp_path / "no" / "f")})
    with pytest.raises(ConnectError, match="cannot be written"):
        task.start()
    connector = FileSink()
    connector.configure({"file": "x", "topics": "t"})
    assert len(connector.task_configs(3)) == 3
    assert java_text([1, "a"]) == "[1, a]"
