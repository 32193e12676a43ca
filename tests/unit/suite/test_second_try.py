"""A test that fails beside others has a second try, alone; nothing is hidden by it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import MAX_FAILURES

ROOT = Path(__file__).parents[3]
FAILS_ONCE = """
from pathlib import Path
def test_fails_once():
    before = Path("has-run")
    had_run = before.exists()
    before.touch()
    assert had_run, "the first time"
"""
CRASHES_ONCE = """
import os
from pathlib import Path
def test_crashes_once():
    before = Path("has-run")
    had_run = before.exists()
    before.touch()
    if not had_run:
        os.abort()
"""
CRASHES = "import os\ndef test_crashes(): os.abort()\n"
A_WORKER = ("--numprocesses", "1", "--dist", "loadfile")
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert False, 'always'\n"
MANY = f"""
import pytest
@pytest.mark.parametrize("number", range({MAX_FAILURES + 1}))
def test_fails(number): assert False
"""
BAD_TEARDOWN = """
from pathlib import Path
import pytest
@pytest.fixture
def broker():
    yield
    before = Path("has-run")
    had_run = before.exists()
    before.touch()
    assert had_run, "the broker logged a bug"
def test_with_a_broker(broker): pass
"""
ALONE = "failed beside others, passed alone"


def run(directory: Path, source: str, *arguments: str) -> tuple[int, str]:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "tests.second_try", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    command += arguments
    done = subprocess.run(
        command, cwd=directory, env={"PYTHONPATH": f"{ROOT}"}, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout


def test_who_passes_alone_is_listed_and_the_run_passes(tmp_path: Path) -> None:
    code, output = run(tmp_path, PASSES + FAILS_ONCE)
    assert code == 0
    assert "the first time" in output
    assert output.split(ALONE)[1].splitlines()[1:] == ["test_it.py::test_fails_once"]


def test_who_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, FAILS_ONCE + FAILS)
    assert code == 1
    assert output.split(ALONE)[1].splitlines()[1:] == ["test_it.py::test_fails_once"]


def test_who_crashed_its_worker_has_a_second_try_too(tmp_path: Path) -> None:
    code, output = run(tmp_path, CRASHES_ONCE + PASSES, *A_WORKER)
    assert code == 0
    assert "crashed while running 'test_it.py::test_crashes_once'" in output
    assert output.split(ALONE)[1].splitlines()[1:] == ["test_it.py::test_crashes_once"]


def test_who_crashes_again_fails_the_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, CRASHES, *A_WORKER)
    assert code != 0
    assert ALONE not in output


@pytest.mark.parametrize("source", [MANY, BAD_TEARDOWN, "import nothing_of_this_name\n"])
def test_there_is_no_second_try_where_it_could_hide_something(tmp_path: Path, source: str) -> None:
    code, output = run(tmp_path, source)
    assert code != 0
    assert "second try, alone" not in output
