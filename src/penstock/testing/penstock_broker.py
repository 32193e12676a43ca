"""Penstock's broker as a process of its own, as a user starts it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.processes import ProcessUsage, RunningProcess, free_port, start_process

READY_LINE = r"^penstock: listening on (\S+):(\d+)"


class PenstockBroker:
    """Starts in the constructor and is ready when that returns.

    The data directory outlives it, so a second broker may take it over.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
        wait_until_ready: bool = True,
        ready_timeout_s: float = 15.0,
    ) -> None:
        self.data_dir = directory / "data"
        self.port = port if port is not None else free_port()
        command = [
            sys.executable,
            "-m",
            "penstock",
            "broker",
            "--port",
            str(self.port),
            "--data",
            str(self.data_dir),
        ]
        for name, value in (options or {}).items():
            command += ["--set", f"{name}={value}"]
        self.process: RunningProcess = start_process(
            command, name="Penstock", log_path=directory / "penstock.log"
        )
        if wait_until_ready:
            try:
                self.process.wait_for_line(READY_LINE, timeout_s=ready_timeout_s)
            except BaseException:
                self.process.kill()
                raise

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.process.log_path

    def usage(self) -> ProcessUsage:
        return self.process.usage()

    def stop(self, *, timeout_s: float = 30.0) -> int:
        return self.process.stop(timeout_s=timeout_s)

    def kill(self) -> int:
        return self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
