"""The processes of a stack: started so that they outlive the command, found again by their pid files.

A pid alone proves nothing: after a restart of the machine another process may have it. The command line must name the
member's folder, too; otherwise the file is a leftover.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from penstock.client.errors import UserError
from penstock.stack.stack import Member, Stack

POLL_PAUSE_S = 0.05


def running_pid(stack: Stack, member: Member) -> int | None:
    """The member's process, if it runs."""
    try:
        pid = int(stack.pid_of(member).read_text())
    except (OSError, ValueError):
        return None
    child = _children.get(pid)
    if child is not None:
        if child.poll() is None:
            return pid
        _endings[pid] = child.returncode
        _children.pop(pid, None)  # its number is free: the next process that has it is not ours by that
    return pid if _is_member(pid, stack, member) else None


def _is_member(pid: int, stack: Stack, member: Member) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")  # empty for a process that has ended
    except OSError:
        return False
    return _names(stack, member, words)


def _names(stack: Stack, member: Member, words: list[bytes]) -> bool:
    folder = os.fsencode(stack.data_of(member))
    return any(word == folder or word.startswith(folder + b"/") for word in words)


# The process runs nothing before it is told that its pid is written. Should this command end before that, it reads the end of
# the pipe and ends too. So whatever happens to this command, what runs is found again. The shell starts no other process
# meanwhile, so to kill it is enough.
_RUN_WHEN_TOLD = 'read -r told && exec "$@" < /dev/null'


def start(stack: Stack, member: Member) -> int:
    """The pid of the new process, which is a session of its own: Ctrl-C at the terminal does not reach it."""
    process: subprocess.Popen[bytes] | None = None
    try:
        stack.data_of(member).mkdir(parents=True, exist_ok=True)
        command = stack.service_of(member).command(stack, member)
        if not _names(stack, member, [os.fsencode(word) for word in command]):
            raise ValueError(f"the command of {member.name} must name {stack.data_of(member)}: {command}")
        with stack.log_of(member).open("ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _RUN_WHEN_TOLD, member.name, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        stack.pid_of(member).write_text(f"{process.pid}\n")
        assert process.stdin is not None
        with (
            contextlib.suppress(BrokenPipeError),
            process.stdin as told,
        ):  # one that was killed meanwhile is found ended
            told.write(b"go\n")
        _children[process.pid] = process
    except BaseException as error:
        if process is not None:
            process.kill()
            process.communicate()  # closes the pipe, and waits
        if isinstance(error, OSError):
            where = error.filename or stack.directory
            raise UserError(f"cannot start {member.name}: {where}: {error.strerror}") from None
        raise
    return process.pid


# Ours until this command ends, by pid: one that ends must be reaped, and has no command line for its first moment.
_children: dict[int, subprocess.Popen[bytes]] = {}
_endings: dict[int, int] = {}


def ending_of(pid: int) -> str:
    """How a process that this command started has ended; empty for others, of which nobody tells."""
    code = _endings.get(pid)
    if code is None:
        return ""
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


class Vitals(NamedTuple):
    uptime_s: float
    memory_bytes: int
    """Of the process itself, resident."""


def vitals_of(pid: int) -> Vitals | None:
    """None for a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    started_s = int(fields[_START_TIME]) / os.sysconf("SC_CLK_TCK")
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    return Vitals(max(0.0, age_s), pages * os.sysconf("SC_PAGE_SIZE"))


_START_TIME = 19  # of the fields behind the command's name, in ticks since the machine was started


def ask_to_stop(stack: Stack, member: Member) -> bool:
    """SIGTERM; False when it does not run."""
    pid = running_pid(stack, member)
    if pid is None:
        stack.pid_of(member).unlink(missing_ok=True)
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    return True


def wait_until_ended(stack: Stack, members: list[Member], *, timeout_s: float) -> list[Member]:
    """Those that still run at the deadline. The pid files of the others are removed."""
    deadline_s = time.monotonic() + timeout_s
    waiting = list(members)
    while waiting:
        for member in list(waiting):
            if running_pid(stack, member) is None:
                stack.pid_of(member).unlink(missing_ok=True)
                waiting.remove(member)
        if not waiting or time.monotonic() > deadline_s:
            break
        time.sleep(POLL_PAUSE_S)
    return waiting
