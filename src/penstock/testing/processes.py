"""Processes with a deadline for becoming ready and one for going away, and what /proc says about them."""

import atexit
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.005
LOG_TAIL_LINES = 30


class ProcessFailed(Exception):
    """A process ended early, or did not become ready in time. The message ends with the tail of its log."""


class ProcessUsage(NamedTuple):
    cpu_seconds: float  # user and system time of all threads since the process began
    resident_bytes: int
    peak_resident_bytes: int


class RunningProcess:
    """One started process. Its standard output and error are in `log_path`."""

    def __init__(
        self, popen: subprocess.Popen[bytes], *, name: str, log_path: Path, log_start: int, started_at: float
    ) -> None:
        self._popen = popen
        self.name = name
        self.log_path = log_path
        self.started_at = started_at  # time.monotonic() just before the process was created
        self._log_start = log_start

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        return self._popen.poll()

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def log_text(self) -> str:
        """What this process has written; not what an earlier one wrote to the same file."""
        return self.log_path.read_bytes()[self._log_start :].decode(errors="replace")

    def wait_for_line(self, pattern: str, *, timeout_s: float = READY_TIMEOUT_S) -> re.Match[str]:
        """Waits for a log line that matches `pattern` (a regular expression, anywhere in the line)."""
        deadline = time.monotonic() + timeout_s
        wanted = re.compile(pattern, re.MULTILINE)
        while True:
            # Asked before the log is read: a line printed just before the end must still count.
            running = self.is_running
            if match := wanted.search(self.log_text()):
                return match
            self._check_waiting(running, deadline, f"no line matched {pattern!r} within {timeout_s:g} s")

    def wait_for_port(
        self, port: int, *, host: str = "127.0.0.1", timeout_s: float = READY_TIMEOUT_S
    ) -> None:
        """Waits until something accepts connections there. Use it where no line says so."""
        deadline = time.monotonic() + timeout_s
        while not port_is_open(host, port):
            self._check_waiting(self.is_running, deadline, f"port {port} did not open within {timeout_s:g} s")

    def _check_waiting(self, running: bool, deadline: float, complaint: str) -> None:
        if not running:
            raise self.failure(f"ended with exit code {self.exit_code}")
        if time.monotonic() > deadline:
            raise self.failure(complaint)
        time.sleep(POLL_INTERVAL_S)

    def failure(self, complaint: str) -> ProcessFailed:
        tail = "\n".join(self.log_text().splitlines()[-LOG_TAIL_LINES:])
        return ProcessFailed(f"{self.name} (pid {self.pid}): {complaint}; the end of its log:\n{tail}")

    def wait(self, *, timeout_s: float) -> int:
        """Waits for the process to end by itself and returns its exit code."""
        try:
            code = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.failure(f"still running after {timeout_s:g} s") from None
        _running.discard(self)
        return code

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM and, after the deadline, SIGKILL. Returns the exit code; -N means signal N."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._popen.kill()
        return self._reap()

    def kill(self) -> int:
        """SIGKILL: what a power cut is to the process, but not to the page cache."""
        self._popen.kill()
        return self._reap()

    def terminate(self) -> None:
        """SIGTERM, without waiting; `stop` waits."""
        self._popen.terminate()

    def pause(self) -> None:
        """SIGSTOP: the process is there and does nothing, as on a machine that hangs."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def _reap(self) -> int:
        code = self._popen.wait(STOP_TIMEOUT_S)
        _running.discard(self)
        return code

    def usage(self) -> ProcessUsage:
        return process_usage(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


# What an interpreter that ends without leaving its `with` blocks would otherwise leave behind.
_running: set[RunningProcess] = set()


@atexit.register
def _kill_leftovers() -> None:
    for process in tuple(_running):
        process.kill()


def start_process(
    command: Sequence[str | Path],
    *,
    name: str,
    log_path: Path,
    environment: Mapping[str, str] | None = None,
    working_directory: Path | None = None,
) -> RunningProcess:
    """Starts `command`; `environment` adds to this process's own. The log file is appended to, not replaced.

    The new process gets its own session: Ctrl-C at the terminal reaches only the process that called, which
    then stops the others in order.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        log_start = log.tell()
        started_at = time.monotonic()
        popen = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=working_directory,
            start_new_session=True,
        )
    process = RunningProcess(popen, name=name, log_path=log_path, log_start=log_start, started_at=started_at)
    _running.add(process)
    return process


SERVER_PORTS: Final = (12_000, 32_000)
_choose = random.SystemRandom()


def free_port(host: str = "127.0.0.1") -> int:
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Different ports that are free now; all are held open until the last is found, so none comes twice.

    Below those that the system gives to outgoing connections: one of them could take a port before its server does.
    """
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            each = socket.socket()
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                each.bind((host, _choose.randrange(*SERVER_PORTS)))
                each.listen(1)  # two that only hold a port may hold the same one
                sockets.append(each)
            except OSError:
                each.close()
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def port_is_open(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def process_usage(pid: int) -> ProcessUsage:
    """CPU time and memory of one process (not its children), from /proc."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The command name, in parentheses, may hold spaces; utime and stime are fields 14 and 15 of the line.
    fields = stat[stat.rindex(")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    sizes = {"VmRSS": 0, "VmHWM": 0}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in sizes:
            sizes[key] = int(value.split()[0]) * 1024
    return ProcessUsage(ticks / os.sysconf("SC_CLK_TCK"), sizes["VmRSS"], sizes["VmHWM"])
