"""Logs of members: the last lines, and what is added."""

from pathlib import Path

import pytest

from penstock.stack.logs import CHUNK_BYTES, LogReader, last_lines


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_last_lines_are_found_from_the_end(tmp_path: Path, count: int, end: str) -> None:
    path = tmp_path / "one.log"
    path.write_text("one\ntwo\nthree" + end)
    assert last_lines(path, count) == ["one", "two", "three"][-count:]
    assert last_lines(path, 0) == []


def test_lines_longer_than_a_chunk_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    long = "x" * (2 * CHUNK_BYTES)
    path.write_text(f"first\n{long}\nlast\n")
    assert last_lines(path, 2) == [long, "last"]


def test_where_there_is_no_log_yet_there_are_no_lines(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "one.log", last=5)
    assert reader.lines() == []
    (tmp_path / "one.log").write_text("first\n")
    assert reader.lines() == ["first"]


def test_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_bytes(b"before\n")
    reader = LogReader(path, last=0)
    with path.open("ab") as log:
        log.write("one\ntw\u00f6".encode()[:-1])
        log.flush()
        assert reader.lines() == ["one"]
        log.write("\u00f6\n".encode()[1:])
    assert reader.lines() == ["tw\u00f6"]
    assert reader.lines() == []


def test_a_log_that_was_cut_or_made_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_text("one\ntwo\n")
    reader = LogReader(path, last=1)
    assert reader.lines() == ["two"]
    path.write_text("three\n")
    assert reader.lines() == ["three"]
    path.rename(tmp_path / "older.log")
    assert reader.lines() == []
    path.write_text("four and more\n")
    assert reader.lines() == ["four and more"]


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_bytes(b"\xff\xfe\n")
    assert last_lines(path, 1) == ["\ufffd\ufffd"]
