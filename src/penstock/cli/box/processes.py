"""The processes of a box: started so that they outlive the command, found again by their pid files.

A pid alone proves nothing: after a restart of the machine another process may have it. The command line must name the
member's folder, too; otherwise the file is a leftover.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.cli.box.composition import HOST, ZOOKEEPER, Box, Member, command_of, existing_box
from penstock.cli.failures import UserError

LOCK_NAME = "box.lock"
POLL_PAUSE_S = 0.05
LOG_TAIL_LINES = 5
LOG_TAIL_BYTES = 8192


def running_pid(box: Box, member: Member) -> int | None:
    """The member's process, if it runs."""
    try:
        pid = int(box.pid_of(member).read_text())
    except (OSError, ValueError):
        return None
    child = _children.get(pid)
    is_running = child.poll() is None if child is not None else _is_member(pid, box, member)
    return pid if is_running else None


def _is_member(pid: int, box: Box, member: Member) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")  # empty for a process that has ended
    except OSError:
        return False
    folder = os.fsencode(box.data_of(member))
    return any(word == folder or word.startswith(folder + b"/") for word in words)


def start(box: Box, member: Member) -> int:
    """The pid of the new process, which is a session of its own: Ctrl-C at the terminal does not reach it."""
    process: subprocess.Popen[bytes] | None = None
    try:
        box.data_of(member).mkdir(parents=True, exist_ok=True)
        command = command_of(box, member)
        with box.log_of(member).open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        box.pid_of(member).write_text(f"{process.pid}\n")
        _children[process.pid] = process
    except BaseException as error:
        if process is not None:  # without its pid file nobody would find it again
            process.kill()
            process.wait()
        if isinstance(error, OSError):
            where = error.filename or box.directory
            raise UserError(f"cannot start {member.name}: {where}: {error.strerror}") from None
        raise
    return process.pid


# Ours until this command ends, by pid: one that ends must be reaped, and has no command line for its first moment.
_children: dict[int, subprocess.Popen[bytes]] = {}


def ask_to_stop(box: Box, member: Member) -> bool:
    """SIGTERM; False when it does not run."""
    pid = running_pid(box, member)
    if pid is None:
        box.pid_of(member).unlink(missing_ok=True)
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    return True


def wait_until_ended(box: Box, members: list[Member], *, timeout_s: float) -> list[Member]:
    """Those that still run at the deadline. The pid files of the others are removed."""
    deadline_s = time.monotonic() + timeout_s
    waiting = list(members)
    while waiting:
        for member in list(waiting):
            if running_pid(box, member) is None:
                box.pid_of(member).unlink(missing_ok=True)
                waiting.remove(member)
        if not waiting or time.monotonic() > deadline_s:
            break
        time.sleep(POLL_PAUSE_S)
    return waiting


def check_port_is_free(box: Box, member: Member) -> None:
    host = HOST if member.kind == ZOOKEEPER else box.broker_host
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, member.port))
        except OSError as error:
            raise UserError(
                f"{member.name} cannot use port {member.port} ({(error.strerror or str(error)).lower()}): stop what "
                "uses it, or make a cluster elsewhere with --port, --zookeeper-port and --data"
            ) from None


def log_tail(box: Box, member: Member) -> str:
    try:
        with box.log_of(member).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:])


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One command at a time: UserError while another is at work in the box."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_NAME).open("ab")
    except OSError as error:
        raise UserError(f"cannot use {directory}: {(error.strerror or str(error)).lower()}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another penstock command is at work in {directory}: wait for its end") from None
        yield


@contextlib.contextmanager
def locked_box(directory: Path) -> Iterator[Box]:
    """The box as it is while no other command can change it; UserError where there is none."""
    existing_box(directory)  # the lock would make the directory
    with locked(directory):
        yield existing_box(directory)
