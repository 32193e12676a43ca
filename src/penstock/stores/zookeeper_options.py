"""The options of ZooKeeper: its address, and how long we wait for it."""

from typing import Final, NamedTuple

from penstock.metadata.tree import TreeError, check_path
from penstock.stores.zookeeper_security import OPEN, ZooKeeperSecurity

DEFAULT_PORT: Final = 2181
DEFAULT_TIMEOUT_S: Final = 30.0
MAX_PORT: Final = 65_535


class ZooKeeperOptions(NamedTuple):
    """`connect` is `host:port,…` with perhaps a `/path` behind, below which everything is kept."""

    connect: str
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int | None = None
    """How long the first connection may take; None: as long as a session lasts."""
    set_acl: bool = False
    max_in_flight_requests: int = 10
    auth: str | None = None
    """`user:password` of the digest scheme."""
    security: ZooKeeperSecurity = OPEN
    timeout_s: float = DEFAULT_TIMEOUT_S
    """The deadline of every call."""


def split_address(connect: str) -> tuple[list[tuple[str, int]], str]:
    """Servers, and the path below which everything is kept; that is empty for the root.

    `[::1]:2181,zk-2/kafka` is the servers ("::1", 2181) and ("zk-2", 2181), and the path `/kafka`.
    """
    hosts, _, path = connect.partition("/")
    root = "/" + path.rstrip("/") if path.rstrip("/") else ""
    try:
        check_path(root or "/")
        return [_server(host.strip()) for host in hosts.split(",")], root
    except ValueError:
        raise TreeError(
            "/", f"not an address of ZooKeeper: {connect!r}; it is HOST:PORT[,HOST:PORT…][/PATH]"
        ) from None


def _server(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, closed, port = text[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(text)
        port = port[1:]
    else:
        host, _, port = text.rpartition(":") if ":" in text else (text, "", "")
    number = int(port) if port else DEFAULT_PORT
    if not host or not 0 < number <= MAX_PORT:
        raise ValueError(text)
    return host, number
