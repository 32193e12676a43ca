"""The page about tests with Penstock: its tests run, in a pytest of their own, with the plugin as it is installed."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import HOW_TO

PAGE = HOW_TO / "test-with-penstock.md"
BLOCK = re.compile(r"^```python(?: title=\"(.*?)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 120


def python(directory: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    shown = BLOCK.findall(PAGE.read_text())
    tests = [text for title, text in shown if not title]
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text)
    (conftest,) = [text for title, text in shown if title == "conftest.py"]
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_options.py").write_text(
        "def test_options_are_taken(penstock_broker, penstock_options, penstock_make_topic):\n"
        "    assert penstock_options['num.partitions'] == '3'\n"
        "    assert penstock_make_topic(partitions=2) != penstock_make_topic()\n"
    )
    assert f"{len(tests) + 1} passed" in python(tmp_path, "-W", "error", "-m", "pytest", "-q")


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    (program,) = [text for title, text in BLOCK.findall(PAGE.read_text()) if title == "without pytest"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", python(tmp_path, "-W", "error", "-c", program))


def test_the_plugin_imports_nothing_of_weight(tmp_path: Path) -> None:
    """It is imported in every pytest run where Penstock is installed."""
    program = (
        "import pytest, sys; before = set(sys.modules); import penstock.testing.pytest_plugin; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    assert python(tmp_path, "-c", program) == "['penstock']\n"
