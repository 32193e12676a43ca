"""`listeners` and `advertised.listeners` as Kafka writes them: NAME://host:port, comma separated."""

import re
from typing import NamedTuple

_ENDPOINT = re.compile(r"^\s*([A-Za-z0-9_.-]+)://(\[[0-9a-fA-F:%.]+\]|[^:\[\]/]*):(-?\d+)\s*$")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Endpoint(NamedTuple):
    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


def parse_endpoints(text: str, option: str) -> list[Endpoint]:
    """ValueError with Kafka's option name when a part is no NAME://host:port, or a name or a port comes twice."""
    endpoints: list[Endpoint] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _ENDPOINT.match(part)
        if match is None:
            raise ValueError(f"{option}: {part!r} is not of the form NAME://host:port")
        name, host, port = match.group(1).upper(), match.group(2).strip("[]"), int(match.group(3))
        if not 0 <= port <= 65535:
            raise ValueError(f"{option}: {port} is no port number")
        if any(other.listener_name == name for other in endpoints):
            raise ValueError(f"{option}: each listener must have a different name, {name} comes twice")
        if (
            option == "listeners"
            and port
            and any((other.host, other.port) == (host, port) for other in endpoints)
        ):
            raise ValueError(f"{option}: each listener must have a different port, {port} comes twice")
        endpoints.append(Endpoint(name, host, port))
    return endpoints


def security_protocol(listener_name: str, protocol_map: str) -> str:
    """The protocol of a listener by listener.security.protocol.map; the four protocol names stand for themselves."""
    for part in filter(None, (piece.strip() for piece in protocol_map.split(","))):
        name, _, protocol = part.partition(":")
        if name.strip().upper() == listener_name:
            return protocol.strip().upper()
    if listener_name in PROTOCOLS:
        return listener_name
    raise ValueError(
        f"listener {listener_name} has no security protocol: add {listener_name}:PLAINTEXT to listener.security.protocol.map"
    )
