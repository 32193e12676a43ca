"""Workers that crash are replaced, and the run goes on."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CONFTEST = """
def pytest_xdist_make_scheduler(config, log):
    from tests.lanes import LaneScheduling
    return LaneScheduling(config, log)
"""
# Both workers crash at once: while one of the replacements still collects, the other one is given work.
CRASHES = """
import os, time
from pathlib import Path
def test_passes(): pass
def test_crashes():
    Path(__file__).with_suffix(".here").touch()
    deadline = time.monotonic() + 60
    while len(list(Path(__file__).parent.glob("*.here"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.abort()
def test_comes_behind_it(): pass
"""
PASSES = """
import os, time
if os.environ.get("PYTEST_XDIST_WORKER") == "gw2":
    time.sleep(2)  # it collects longer than the other
def test_passes(): pass
"""


def test_two_workers_that_crash_at_once_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(CRASHES)
    for name in ("c", "d", "e"):
        (tmp_path / f"test_{name}.py").write_text(PASSES)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "2"]
    command += ["--dist", "loadfile", "--no-loadscope-reorder"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}"}, capture_output=True, text=True, timeout=240
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "2 failed, 7 passed" in done.stdout
