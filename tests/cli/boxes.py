"""A stack of the tests' own, as a user starts it, and surely gone afterwards."""

import contextlib
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cli.conftest import Finished, run_command

ELSEWHERE = {"PENSTOCK_BOOTSTRAP": "127.0.0.1:1"}  # where nobody is
SESSION_TIMEOUT_MS = 3000  # shorter than a user's: tests kill brokers


class TestBox:
    __test__ = False

    def __init__(self, directory: Path, *, program: Sequence[str] = ("penstock",)) -> None:
        self.directory = directory
        self.program = program

    def up(self, *words: str) -> Finished:
        return self.run("up", *words)

    def up_anew(self, *words: str) -> Finished:
        """On free ports."""
        timeout = f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}"
        return self.up("--port", "0", "--zookeeper-port", "0", "--set", timeout, *words)

    def run(self, *words: str) -> Finished:
        """It is named by its directory: the environment, which names another cluster, must not matter."""
        return run_command(*self.program, *words, "--data", str(self.directory), environment=ELSEWHERE)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").out)
        return found

    def pids(self) -> dict[str, int]:
        """A file that was made this moment may still be empty."""
        texts = {path.stem: path.read_text() for path in self.directory.glob("*.pid")}
        return {name: int(text) for name, text in texts.items() if text.strip()}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports("broker"))

    @property
    def zookeeper(self) -> str:
        return f"127.0.0.1:{self._ports('zookeeper')[0]}"

    def _ports(self, service: str) -> list[int]:
        members = json.loads((self.directory / "box.json").read_text())["members"]
        return [member["port"] for member in members if member["service"] == service]

    def kill(self, name: str) -> None:
        os.kill(self.pids()[name], signal.SIGKILL)

    def close(self) -> None:
        """Whatever a test left running ends here."""
        for name, pid in self.pids().items():
            with contextlib.suppress(OSError):
                if str(self.directory / name) in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
