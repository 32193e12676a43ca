"""What can go wrong between a program and a cluster. Each message is one line; commands print it and end with an exit code.

A class is here because somebody catches it: commands tell `UserError` (theirs to mend) from `Unreachable` (start the
broker, mend the address) and `Refused` (the cluster's word); readers go on after some kinds of `ReadFailed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_LINE_CHARACTERS: Final = 2_000
"""Of what somebody else said."""


class UserError(Exception):
    """Something the user gave cannot be used: a file, a value, an option."""


class BadOption(UserError, ValueError):
    """An argument, option or property that cannot be used; the message begins with its name."""


class Unreachable(Exception):
    """No broker answers at the given addresses."""


class Refused(Exception):
    """The cluster answered with an error. `exception_name` is the Java class that Kafka's own tools would print."""

    def __init__(self, detail: str, *, code: int = -1, exception_name: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.exception_name = exception_name


class ReadFailed(Refused):
    """A read cannot go on: the cluster cannot be reached, refuses, or no longer has what was asked for."""


class AccessRefused(ReadFailed):
    """The broker does not let us in, or we do not trust it; another attempt will not go better."""

    def __init__(self, option: str, complaint: str) -> None:
        super().__init__(f"{complaint} (option {option})")
        self.option = option
        self.complaint = complaint


class NoSuchTopic(ReadFailed):
    """`near` are topics with similar names, the most similar first."""

    def __init__(self, topic: str, near: Sequence[str]) -> None:
        hint = f" Did you mean '{near[0]}'?" if near else ""
        super().__init__(f"there is no topic '{topic}'.{hint}")
        self.topic = topic
        self.near = tuple(near)


class NoSuchGroup(Refused):
    """`near` are groups with similar names, the most similar first."""

    def __init__(self, group: str, near: Sequence[str], *, is_any_there: bool = True) -> None:
        hint = f"Did you mean '{near[0]}'?" if near else "Those that are there: penstock groups list"
        hint = hint if is_any_there else "No group has joined or committed yet."
        super().__init__(f"there is no group '{group}'. {hint}")
        self.group = group
        self.near = tuple(near)


def reason(error: OSError, timeout_s: float | None = None) -> str:
    """Why a connection failed, in a few words. `timeout_s` is how long was waited, where that is worth telling."""
    import socket

    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer in time" if timeout_s is None else f"no answer within {timeout_s:.0f} s"
    if isinstance(error, socket.gaierror):
        return "unknown host"
    if isinstance(error, ConnectionResetError) and error.strerror:
        return "it closed the connection"
    return error.strerror.lower() if error.strerror else str(error)


def one_line(said: object) -> str:
    """Somebody else's words, whatever line ends and control characters are in them."""
    line = " ".join("".join(each if each.isprintable() else " " for each in str(said)).split())
    return line if len(line) <= MAX_LINE_CHARACTERS else line[:MAX_LINE_CHARACTERS] + "…"
