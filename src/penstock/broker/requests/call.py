"""What a handler knows about the request it serves, beside the message."""

from typing import NamedTuple

from penstock.net.connection import Connection
from penstock.security.principals import Principal
from penstock.wire.framing import RequestHeader


class Client(NamedTuple):
    """Who sent a request to the broker that passed it on to us."""

    principal: Principal
    host: str


class Call(NamedTuple):
    connection: Connection
    """The one it came by: of another broker where that passed it on."""
    header: RequestHeader
    client: Client | None = None
    """Where a broker passed it on, and we believe it (`forwarding`)."""

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def principal(self) -> Principal:
        """Who asks."""
        return self.connection.principal if self.client is None else self.client.principal

    @property
    def host(self) -> str:
        """Where it was asked."""
        return self.connection.peer_host if self.client is None else self.client.host

    @property
    def client_host(self) -> str:
        """In the form Kafka shows it: /127.0.0.1."""
        return f"/{self.host}"
