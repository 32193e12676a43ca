"""The commands as a user starts them: through the launchers in bin/."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.testing.penstock_broker import PenstockBroker

BIN = Path(__file__).parents[2] / "bin"
TIMEOUT_S = 60


class Finished(NamedTuple):
    out: str
    err: str
    code: int


Run = Callable[..., Finished]


def run_command(
    *words: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        input=data,
        capture_output=True,
        timeout=TIMEOUT_S,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    return Finished(done.stdout.decode(), done.stderr.decode(), done.returncode)


@pytest.fixture
def run() -> Run:
    return run_command


@pytest.fixture
def kafka(broker: PenstockBroker) -> Run:
    """A kafka- command against the broker: `kafka("topics", "--list")`."""

    def run_tool(tool: str, *words: str, stdin: str | bytes = "") -> Finished:
        return run_command(f"kafka-{tool}", "--bootstrap-server", broker.bootstrap, *words, stdin=stdin)

    return run_tool


@pytest.fixture
def penstock(broker: PenstockBroker) -> Run:
    """A penstock verb against the broker: `penstock("topics", "list")`."""

    def run_verb(*words: str, stdin: str | bytes = "") -> Finished:
        return run_command("penstock", *words, "-b", broker.bootstrap, stdin=stdin)

    return run_verb
