"""Whether a broker is there, asked before librdkafka is: one connection and one ApiVersions request, within four
seconds.

librdkafka would go on trying in the background for as long as it is let; a person wants to know now, and why.
"""

import socket
import struct
import time

from penstock.client.errors import Unreachable, UserError, reason
from penstock.model.endpoints import Address, parse_address

PROBE_TIMEOUT_S = 4.0
MIN_PATIENCE_S = 1.0
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
# Size, then header version 1: API 18 (ApiVersions) version 0, correlation id 1, client id "penstock-probe". No body.
PROBE_REQUEST = struct.pack(">ihhih14s", 24, 18, 0, 1, 14, b"penstock-probe")
CLOSED = "it closed the connection"
ASKS_WHO = "Does it ask for TLS or a login? Those are named in a file: --command-config"
MAX_PROBE_ANSWER_BYTES = 1 << 20


def parse_addresses(bootstrap: str) -> list[Address]:
    addresses = []
    for part in bootstrap.split(","):
        text = part.strip()
        if "://" in text:
            text = text.split("://", 1)[1]
        if not text:
            continue
        try:
            addresses.append(parse_address(text))
        except ValueError:
            raise UserError(
                f"'{part.strip()}' is not an address: write HOST:PORT, such as localhost:9092"
            ) from None
    if not addresses:
        raise UserError("no address given: write HOST:PORT, such as localhost:9092")
    return addresses


def is_host(name: str) -> bool:
    """An IP address, or a name that is resolved here."""
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


def check_reachable(
    bootstrap: str, *, speaks_plaintext: bool = True, timeout_s: float = PROBE_TIMEOUT_S
) -> socket.AddressFamily:
    """Returns the address family that worked; Unreachable with one clear sentence when no address did."""
    addresses = parse_addresses(bootstrap)
    deadline = time.monotonic() + timeout_s
    reasons = []
    for number, address in enumerate(addresses):
        patience_s = max(0.5, (deadline - time.monotonic()) / (len(addresses) - number))
        try:
            return _probe(address, patience_s=patience_s, speaks_plaintext=speaks_plaintext)
        except OSError as error:
            reasons.append((address, reason(error, patience_s)))
    raise Unreachable(_sentence(reasons))


def _probe(address: Address, *, patience_s: float, speaks_plaintext: bool) -> socket.AddressFamily:
    with socket.create_connection(address, timeout=patience_s) as connection:
        if speaks_plaintext:
            connection.sendall(PROBE_REQUEST)
            prefix = _receive(connection, 8)
            size, correlation_id = struct.unpack(">ii", prefix)
            if correlation_id != 1 or not 4 < size < MAX_PROBE_ANSWER_BYTES:
                raise ConnectionAbortedError("what answers there does not speak the Kafka protocol")
            _receive(connection, size - 4)
        return socket.AddressFamily(connection.family)


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    received = b""
    while len(received) < size_bytes:
        chunk = connection.recv(size_bytes - len(received))
        if not chunk:
            raise ConnectionResetError(CLOSED)
        received += chunk
    return received


def _sentence(reasons: list[tuple[Address, str]]) -> str:
    if len(reasons) > 1:
        tried = "; ".join(f"{address}: {why}" for address, why in reasons)
        sentence = f"cannot reach a broker at any of the addresses ({tried})."
        return f"{sentence} {ASKS_WHO}" if all(why == CLOSED for _, why in reasons) else sentence
    (address, why) = reasons[0]
    sentence = f"cannot reach a broker at {address}: {why}."
    if why == "connection refused" and address.host in LOCAL_HOSTS:
        return f"{sentence} Is it running? Try: penstock broker --port {address.port}"
    if why == "connection refused":
        return f"{sentence} Is it running?"
    if why == CLOSED:
        return f"{sentence} {ASKS_WHO}"
    return sentence
