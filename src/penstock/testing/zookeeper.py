"""A real ZooKeeper, one server or an ensemble, on the loopback address."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.stores.zookeeper_server import (
    TICK_TIME_MS,
    Member,
    ServerStatus,
    server_command,
    server_status,
    write_configuration,
)
from penstock.testing.processes import (
    POLL_INTERVAL_S,
    READY_TIMEOUT_S,
    RunningProcess,
    free_ports,
    start_process,
)

HOST = "127.0.0.1"
# The page cache outlives a killed process: tests need no fsync, and share their disk with others.
FAST_DISK = ("-Dzookeeper.forceSync=no",)


class ZooKeeperServer:
    """One server. It starts in the constructor; ready when that returns, unless told not to wait.

    A directory that a server has used before is taken over as it is, and `start` begins again with the same port. `more` are
    lines for `zoo.cfg`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        server_id: int = 1,
        members: Sequence[Member] = (),
        tick_time_ms: int = TICK_TIME_MS,
        properties: Sequence[str] = FAST_DISK,
        more: Sequence[str] = (),
        wait_until_ready: bool = True,
    ) -> None:
        self.server_id = server_id
        self.port = port if port is not None else free_ports(1)[0]
        self.address = f"{HOST}:{self.port}"
        self._directory = directory
        self._properties = tuple(properties)
        self._configuration = write_configuration(
            directory,
            host=HOST,
            port=self.port,
            server_id=server_id,
            members=members,
            tick_time_ms=tick_time_ms,
            more=more,
        )
        self.process: RunningProcess | None = None
        self.start(wait_until_ready=wait_until_ready)

    def start(self, *, wait_until_ready: bool = True) -> None:
        assert self.process is None, "it is running"
        self.process = start_process(
            server_command(self._configuration, properties=self._properties),
            name=f"zookeeper-{self.server_id}",
            log_path=self._directory / "zookeeper.log",
        )
        if wait_until_ready:
            try:
                self.wait_until_ready()
            except BaseException:
                self.kill()
                raise

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> None:
        process = self._running()
        deadline = time.monotonic() + timeout_s
        while self.status() is None:
            if not process.is_running:
                raise process.failure(f"ended with exit code {process.exit_code}")
            if time.monotonic() > deadline:
                raise process.failure(f"does not serve after {timeout_s:g} s")
            time.sleep(10 * POLL_INTERVAL_S)

    def status(self) -> ServerStatus | None:
        """None while it does not serve: not yet up, without a quorum, or paused."""
        return server_status(HOST, self.port, timeout_s=1.0)

    def stop(self) -> None:
        if self.process is not None:
            self.resume()  # a stopped process takes SIGTERM only once it goes on
            self.process.stop()
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process = None

    def wipe(self) -> None:
        """All that it knew is lost. It must be stopped."""
        assert self.process is None, "it is running"
        for path in self._directory.rglob("version-2"):
            shutil.rmtree(path)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._running().pause()

    def resume(self) -> None:
        if self.process is not None and self.process.is_running:
            self.process.resume()

    def _running(self) -> RunningProcess:
        assert self.process is not None, "it is not running"
        return self.process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ZooKeeperEnsemble:
    """Several servers with a quorum; `address` names them all, as a broker wants it."""

    def __init__(
        self,
        directory: Path,
        *,
        servers: int = 3,
        tick_time_ms: int = TICK_TIME_MS,
        properties: Sequence[str] = FAST_DISK,
    ) -> None:
        ports = free_ports(3 * servers)
        members = [Member(HOST, *ports[3 * n : 3 * n + 3]) for n in range(servers)]
        self.servers: list[ZooKeeperServer] = []
        try:
            for number, member in enumerate(members, start=1):
                self.servers.append(
                    ZooKeeperServer(
                        directory / f"server-{number}",
                        port=member.client_port,
                        server_id=number,
                        members=members,
                        tick_time_ms=tick_time_ms,
                        properties=properties,
                        wait_until_ready=False,
                    )
                )
            for server in self.servers:
                server.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        self.address = ",".join(server.address for server in self.servers)

    def leader(self, *, timeout_s: float = READY_TIMEOUT_S) -> ZooKeeperServer:
        """The server that leads, once one does."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for server in self.servers:
                status = server.status() if server.process is not None else None
                if status is not None and status.mode == "leader":
                    return server
            time.sleep(10 * POLL_INTERVAL_S)
        raise TimeoutError(f"no server of {self.address} leads after {timeout_s:g} s")

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
