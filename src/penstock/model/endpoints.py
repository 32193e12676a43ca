"""Where something listens, as Kafka writes it: `host:port`, and `NAME://host:port` for a broker's listener.

A host with colons (IPv6) stands in brackets in a text, and without them in `host`.
"""

import re
from typing import Final, NamedTuple

_ENDPOINT: Final = re.compile(r"^\s*([A-Za-z0-9_.-]+)://(\[[0-9a-fA-F:%.]+\]|[^:\[\]/]*):(-?\d+)\s*$")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


class Endpoint(NamedTuple):
    """A broker's listener."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.listener}://{self.address}"

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_address(text: str) -> Address:
    """ValueError if it is no host:port that one can connect to."""
    host, _, port = text.strip().rpartition(":")
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text.strip()!r} is not of the form host:port")
    return Address(host, int(port))


def parse_endpoint(text: str) -> Endpoint:
    """ValueError if it is no NAME://host:port. The host may be empty and the port 0: then the system chooses."""
    match = _ENDPOINT.match(text)
    if match is None:
        raise ValueError(f"{text.strip()!r} is not of the form NAME://host:port")
    return Endpoint(match.group(1), match.group(2).strip("[]"), int(match.group(3)))
