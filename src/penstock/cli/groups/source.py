"""The way to a cluster's groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.clients import REQUEST_TIMEOUT_S, Connection
from penstock.cli.groups.model import Groups


@contextmanager
def open_groups(connection: Connection, *, timeout_s: float = REQUEST_TIMEOUT_S) -> Iterator[Groups]:
    from penstock.cli.groups.over_the_wire import WireGroups

    groups = WireGroups(connection, timeout_s=timeout_s)
    try:
        yield groups
    finally:
        groups.close()
