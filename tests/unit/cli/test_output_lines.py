"""Rows that come one after the other: a line of JSON for programs, a drawing for people, each when it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date

import pytest

from penstock.cli.verbs.output import json_line, show_array, show_lines


def test_each_row_is_shown_before_the_next_one_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def rows() -> Iterator[int]:
        for number in (1, 2):
            yield number
            shown.append(capsys.readouterr().out)

    show_lines("json", rows(), print, document=lambda number: {"number": number})
    assert shown == ['{"number": 1}\n', '{"number": 2}\n']
    shown.clear()
    show_lines("table", rows(), lambda number: print(f"row {number}"), document=lambda number: number)
    assert shown == ["row 1\n", "row 2\n"]


def test_programs_get_nothing_of_rows_that_have_no_document(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines("json", [1, 2], print)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("objects", [[], [{"a": 1}], [{"a": 1}, {"a": date(2026, 11, 19)}]])
def test_an_array_is_one_document_with_an_object_on_each_line(
    objects: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    show_array(iter(objects), str)
    out = capsys.readouterr().out
    assert json.loads(out) == json.loads(json.dumps(objects, default=str))
    assert out.count("\n") == (len(objects) + 2 if objects else 1)


def test_half_of_a_character_is_escaped() -> None:
    assert json_line({"v": "é"}) == '{"v": "é"}\n'.encode()
    assert json_line({"v": "\ud800"}) == b'{"v": "\\ud800"}\n'
