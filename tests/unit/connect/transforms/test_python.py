"""A function of one's own as a transform."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connect import DataError, InvalidConfig, SinkRecord
from penstock.connect.transforms.python import PythonTransform

CODE = """
def doubled(record):
    return record.replaced(value=record.value * 2)

def positive(record):
    return record if record.value > 0 else None

def scaled(record, config):
    return record.replaced(value=record.value * int(config["factor"]))

def wrong(record):
    return record.value

async def waiting(record):
    return record

number = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "changes.py"
    path.write_text(CODE)
    return path


def applied(place: str, value: object, **more: str) -> object:
    made = PythonTransform()
    made.configure({"class": place, **more})
    found = made.apply(SinkRecord("t", 0, 0, value))
    return None if found is None else found.value


def test_a_function_in_a_file_gets_a_record_and_returns_one(file: Path) -> None:
    assert applied(f"{file}:doubled", 4) == 8


def test_none_leaves_the_record_out(file: Path) -> None:
    assert applied(f"{file}:positive", -1) is None
    assert applied(f"{file}:positive", 1) == 1


def test_the_function_gets_the_configuration_if_it_wants_it(file: Path) -> None:
    assert applied(f"{file}:scaled", 4, factor="10") == 40


def test_a_function_in_a_module_is_found() -> None:
    assert applied(f"{__name__}:kept", "x") == "x"


def kept(record: SinkRecord) -> SinkRecord:
    return record


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "has no missing"),
        ("number", "number is not a function"),
        ("waiting", "waiting is async: a transform is a plain function"),
        ("not a name", "It must be module:function or file.py:function"),
    ],
)
def test_what_is_no_function_is_refused(file: Path, name: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        applied(f"{file}:{name}", 1)


@pytest.mark.parametrize("place", ["nothing.at.all:f", "/no/such/file.py:f", "f"])
def test_what_cannot_be_loaded_is_refused_with_the_reason(place: str) -> None:
    with pytest.raises(InvalidConfig, match=f"Invalid value {place}|no such file"):
        applied(place, 1)


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def (")
    with pytest.raises(InvalidConfig, match="SyntaxError"):
        applied(f"{bad}:f", 1)


def test_a_function_that_fails_or_returns_no_record_makes_a_record_that_cannot_be_used(file: Path) -> None:
    with pytest.raises(DataError, match=r"positive failed: TypeError"):
        applied(f"{file}:positive", "text")
    with pytest.raises(DataError, match="returned a int: it must return a record, or None to leave it out"):
        applied(f"{file}:wrong", 1)
