"""A run of seeds that is told to stop leaves no process behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 90.0


def parents() -> dict[int, int]:
    """Of each process that runs, the process that started it; what has ended and is only listed is left out."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(stat.parent.name)] = int(parent)
    return found


def started_by(pid: int) -> set[int]:
    known, found = parents(), {pid}
    while more := {each for each, parent in known.items() if parent in found} - found:
        found |= more
    return found - {pid}


def has_broker(pids: set[int]) -> bool:
    return any(b"penstock\0broker" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


def test_a_run_that_is_terminated_stops_its_workers_and_their_brokers() -> None:
    command = [sys.executable, "-m", "simulation.liar", "--seeds", "1000", "--jobs", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        deadline_s = time.monotonic() + WAIT_S
        while not has_broker(started := started_by(run.pid)):
            assert run.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        run.terminate()
        assert run.wait(WAIT_S) == 128 + signal.SIGTERM
    deadline_s = time.monotonic() + WAIT_S
    while left := started & parents().keys():
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)
