"""Ports: which are free, and whether a member can have its own."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Collection
from pathlib import Path

from penstock.client.errors import UserError, reason
from penstock.stack.stack import LOOPBACK, Member, Stack


class PortTaken(UserError):
    """`told` says which and by whom, without what to do about it."""

    def __init__(self, stack: Stack, member: Member, told: str) -> None:
        option = stack.service_of(member).port_option
        super().__init__(f"{told}, or make a cluster elsewhere with {option} and --data")
        self.told, self.member, self.option = told, member, option


def check_port(port: int) -> int:
    if not 0 < port < 65536:
        raise UserError(f"{port} is not a port: they go from 1 to 65535")
    return port


def free_ports(count: int, *, apart_from: Collection[int] = ()) -> list[int]:
    """Different ones: all are held until the last is found. Those of members that do not run are free, too, and not
    meant."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            one = held.enter_context(socket.socket())
            one.bind((LOOPBACK, 0))
            port = int(one.getsockname()[1])
            if port not in apart_from:
                found.append(port)
    return found


def check_ports_are_free(stack: Stack, member: Member) -> None:
    """UserError when something else has one of the ports of a member that does not run."""
    host = stack.host_of(member)
    for port in member.ports:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                user = user_of(port)
                what = f"stop {user}, which uses it" if user is not None else "stop what uses it"
                raise PortTaken(
                    stack, member, f"{member.name} cannot use port {port} ({reason(error)}): {what}"
                ) from None


def user_of(port: int) -> str | None:
    """`python3 (pid 1234)`: the process that listens there; None where nobody tells, as of another user's."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(descriptor) in inodes:
                        return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
    return None


_LISTENS = "0A"
