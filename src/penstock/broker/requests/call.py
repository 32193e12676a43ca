"""What a handler knows about the request it serves, beside the message."""

from typing import NamedTuple

from penstock.net.connection import Connection
from penstock.wire.framing import RequestHeader


class Call(NamedTuple):
    connection: Connection
    header: RequestHeader

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """In the form Kafka shows it: /127.0.0.1."""
        return f"/{self.connection.peer_host}"
