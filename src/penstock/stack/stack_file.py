"""A stack in its directory: `box.json` says what belongs to it, `box.lock` lets one command at a time change it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.client.errors import UserError, reason
from penstock.stack import services
from penstock.stack.secret_file import write_secret
from penstock.stack.stack import ALL_ADDRESSES, Member, Stack

FILE_NAME = "box.json"
LOCK_NAME = "box.lock"
POLL_PAUSE_S = 0.05
PATIENCE_S = 3.0
"""A watch in the foreground has the lock for moments only, when it starts a member again."""


class Locked(UserError):
    """Another command is at work in the directory."""


def read_stack(directory: Path) -> Stack | None:
    """None where there is none yet."""
    path = directory / FILE_NAME
    table = services.SERVICES
    try:
        stored = json.loads(path.read_text())
        members = tuple(_member(entry) for entry in stored["members"])
        settings = stored["settings"]
        if isinstance(settings, list):  # from before other services than brokers had some
            settings = {"broker": settings}
        stack = Stack(
            directory.resolve(),
            members,
            table,
            {name: tuple(lines) for name, lines in settings.items()},
            stored.get("host") or ALL_ADDRESSES,  # as it was where none is written
            stored.get("secure") is True,
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {reason(error)}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{path} does not describe a cluster: move it away to begin anew") from None
    known = {service.name for service in table}
    for member in members:
        if member.service not in known:
            raise UserError(
                f"{path} has {member.name}, and this Penstock knows no service '{member.service}': use the Penstock "
                "that made it"
            )
    return stack


def _member(entry: dict[str, Any]) -> Member:
    if "kind" in entry:  # from before services were rows of a table
        ports = {name: entry.get(f"{name}_port", 0) for name in ("quorum", "election")}
        other_ports = {name: port for name, port in ports.items() if port}
        return Member(entry["name"], entry["kind"], entry["number"], entry["port"], other_ports)
    return Member(**entry)


def existing_stack(directory: Path) -> Stack:
    """UserError where there is none."""
    stack = read_stack(directory)
    if stack is None:
        raise UserError(
            f"there is no cluster in {directory}: penstock up --data {directory} makes one, --data names another"
        )
    return stack


def write_stack(stack: Stack) -> None:
    """The old file stays until the new one is whole."""
    stored = {
        "members": [
            {**member._asdict(), "other_ports": dict(member.other_ports)} for member in stack.members
        ],
        "settings": {name: list(lines) for name, lines in stack.settings.items()},
        "host": stack.host,
        "secure": stack.is_secure,
    }
    path = stack.directory / FILE_NAME
    beside = path.with_suffix(".new")
    try:
        write_secret(beside, json.dumps(stored, indent=2) + "\n")  # a setting may be a password
        os.replace(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {reason(error)}") from None


@contextlib.contextmanager
def locked(directory: Path, *, patience_s: float = PATIENCE_S, file_name: str = LOCK_NAME) -> Iterator[None]:
    """One command at a time: Locked while another is at work in the directory, after so much patience."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / file_name).open("ab")
    except OSError as error:
        raise UserError(f"cannot use {directory}: {reason(error)}") from None
    deadline_s = time.monotonic() + patience_s
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    raise Locked(
                        f"another penstock command is at work in {directory}: wait for its end"
                    ) from None
                time.sleep(POLL_PAUSE_S)
        yield


@contextlib.contextmanager
def locked_stack(directory: Path, *, patience_s: float = PATIENCE_S) -> Iterator[Stack]:
    """The stack as it is while no other command can change it; UserError where there is none."""
    existing_stack(directory)  # the lock would make the directory
    with locked(directory, patience_s=patience_s):
        yield existing_stack(directory)
