"""The way to a cluster's groups: over the wire where that is possible, by librdkafka where security is in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.clients import REQUEST_TIMEOUT_S, Connection
from penstock.cli.groups.model import Groups


@contextmanager
def open_groups(connection: Connection, *, timeout_s: float = REQUEST_TIMEOUT_S) -> Iterator[Groups]:
    groups = _groups(connection, timeout_s)
    try:
        yield groups
    finally:
        groups.close()


def _groups(connection: Connection, timeout_s: float) -> Groups:
    if connection.is_plaintext:
        from penstock.cli.groups.over_the_wire import WireGroups

        return WireGroups(connection, timeout_s=timeout_s)
    from penstock.cli.groups.by_librdkafka import LibrdkafkaGroups

    return LibrdkafkaGroups(connection, timeout_s=timeout_s)
