"""Ports: which are free, and whether a member can have its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Collection

from penstock.client.errors import UserError, reason
from penstock.stack.stack import LOOPBACK, Member, Stack


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
                option = stack.service_of(member).port_option
                raise UserError(
                    f"{member.name} cannot use port {port} ({reason(error)}): stop what uses "
                    f"it, or make a cluster elsewhere with {option} and --data"
                ) from None
