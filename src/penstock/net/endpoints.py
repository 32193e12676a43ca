"""`listeners` and `advertised.listeners` as Kafka writes them: NAME://host:port, comma separated."""

from penstock.model.endpoints import Endpoint, parse_endpoint

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def parse_endpoints(text: str, option: str) -> list[Endpoint]:
    """ValueError with Kafka's option name when a part is no NAME://host:port, or a name or a port comes twice."""
    endpoints: list[Endpoint] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        try:
            name, host, port, _ = parse_endpoint(part)
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
        name = name.upper()
        if not 0 <= port <= 65535:
            raise ValueError(f"{option}: {port} is not a port number")
        if any(other.listener == name for other in endpoints):
            raise ValueError(f"{option}: each listener must have a different name, and {name} is there twice")
        if (
            option == "listeners"
            and port
            and any((other.host, other.port) == (host, port) for other in endpoints)
        ):
            raise ValueError(f"{option}: each listener must have a different port, and {port} is there twice")
        endpoints.append(Endpoint(name, host, port))
    return endpoints


def security_protocol(listener: str, protocol_map: str) -> str:
    """The protocol of a listener by listener.security.protocol.map; the four protocol names stand for themselves. ValueError for
    anything that is no protocol: a slip of the pen must not open a listener."""
    for part in filter(None, (piece.strip() for piece in protocol_map.split(","))):
        name, _, protocol = part.partition(":")
        if name.strip().upper() == listener:
            found = protocol.strip().upper()
            if found not in PROTOCOLS:
                raise ValueError(
                    f"listener.security.protocol.map: {protocol.strip()!r} of {listener} is not {', '.join(PROTOCOLS)}"
                )
            return found
    if listener in PROTOCOLS:
        return listener
    raise ValueError(
        f"listener {listener} has no security protocol: add {listener}:PLAINTEXT to listener.security.protocol.map"
    )
