"""Penstock's broker as a process of its own, as a user starts it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.processes import ProcessUsage, RunningProcess, free_ports, start_process

HOST = "127.0.0.1"
"""Not every address: others on the network have no business in a test or a demo."""
READY_LINE = r"^penstock: listening on (\S+):(\d+)"


class PenstockBroker:
    """Starts in the constructor and is ready when that returns.

    The data directory outlives it, so a second broker may take it over. `listeners` are more than the plain one, by security
    protocol: {"SASL_SSL": {"ssl.keystore.location": …}}; see `address`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
        listeners: Mapping[str, Mapping[str, str]] | None = None,
        wait_until_ready: bool = True,
        ready_timeout_s: float = 15.0,
    ) -> None:
        self.data_dir = directory / "data"
        extra = listeners or {}
        own_port, *extra_ports = free_ports(1 + len(extra))
        self.port = port if port is not None else own_port
        self._ports = {"PLAINTEXT": self.port, **dict(zip(extra, extra_ports, strict=True))}
        command = [sys.executable, "-m", "penstock", "broker", "--data", str(self.data_dir)]
        if extra:
            command += self._listening(extra)
        elif "listeners" not in (options or {}):  # which say it themselves; `port` is that of the clients
            command += ["--host", HOST, "--port", str(self.port)]
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

    def _listening(self, extra: Mapping[str, Mapping[str, str]]) -> list[str]:
        addresses = ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in self._ports.items())
        words = ["--set", f"listeners={addresses}"]
        for protocol, properties in extra.items():
            for name, value in properties.items():
                words += ["--set", f"listener.name.{protocol.lower()}.{name}={value}"]
        return words

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def address(self, protocol: str) -> str:
        """Of the listener for a security protocol."""
        return f"{HOST}:{self._ports[protocol]}"

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
