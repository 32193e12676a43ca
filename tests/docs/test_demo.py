"""The README's first command does what it says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_produces_consumes_and_says_what_to_try_next() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("listening on", "produce", "consume", "100000/100000", "memory of the broker", "KEEP=1"):
        assert word in done.stdout, done.stdout
