"""How to reach the cluster and how much to fetch: Kafka's names, checked at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.client.errors import BadOption
from penstock.client.patience import Backoff, Patience
from penstock.client.properties import SECURITY_NAMES, unknown
from penstock.client.security import Security, security_of
from penstock.model.endpoints import Address, parse_address

# name → (default, smallest value)
_NUMBERS: Final = {
    "fetch.max.bytes": (16 << 20, 1),
    "max.partition.fetch.bytes": (8 << 20, 1),
    "fetch.max.wait.ms": (250, 0),
    "request.timeout.ms": (30_000, 1),
    "default.api.timeout.ms": (
        60_000,
        1,
    ),  # twice that: a broker that keeps silent is not the only one that is asked
    "retry.backoff.ms": (100, 0),
    "retry.backoff.max.ms": (1000, 0),
}
DEFAULT_BOOTSTRAP: Final = "localhost:9092"


class ClientOptions(NamedTuple):
    """As `client_options` makes them."""

    addresses: tuple[Address, ...]
    client_id: str
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    fetch_max_wait_ms: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    """How long what is retriable is tried again before it is told."""
    backoff: Backoff
    security: Security

    def patience(self) -> Patience:
        return Patience(self.default_api_timeout_ms / 1000, self.backoff)


def client_options(bootstrap: str, given: Mapping[str, str | int] | None = None) -> ClientOptions:
    """From Kafka's names, those of security in either dialect. BadOption, which begins with the name."""
    numbers = {name: default for name, (default, _) in _NUMBERS.items()}
    client_id = "penstock-arrow"
    security: dict[str, str] = {}
    for name, value in (given or {}).items():
        if name in _NUMBERS:
            numbers[name] = _number(name, value)
        elif name == "client.id":
            client_id = str(value)
        elif name in SECURITY_NAMES:
            security[name] = str(value)
        else:
            raise BadOption(_unknown(name))
    return ClientOptions(
        _addresses(bootstrap),
        client_id,
        numbers["fetch.max.bytes"],
        numbers["max.partition.fetch.bytes"],
        numbers["fetch.max.wait.ms"],
        numbers["request.timeout.ms"],
        numbers["default.api.timeout.ms"],
        Backoff(numbers["retry.backoff.ms"] / 1000, max_s=numbers["retry.backoff.max.ms"] / 1000),
        security_of(security),
    )


def _unknown(name: str) -> str:
    near = unknown([name], (*_NUMBERS, "client.id", *SECURITY_NAMES)).get(name)
    if near:
        return f"{name}: there is no such option; did you mean {near}?"
    known = ", ".join(("client.id", *_NUMBERS))
    return f"{name}: there is no such option; known are {known} and the clients' security options"


def _number(name: str, value: str | int) -> int:
    smallest = _NUMBERS[name][1]
    try:
        number = int(value)
    except ValueError:
        raise BadOption(f"{name}: '{value}' is not a number") from None
    if not smallest <= number < 1 << 31:
        raise BadOption(f"{name}: must be {smallest} or more and fit in 32 bits, not {number}")
    return number


def _addresses(bootstrap: str) -> tuple[Address, ...]:
    if not isinstance(bootstrap, str):
        raise BadOption(f"bootstrap: write HOST:PORT, not {bootstrap!r}")
    addresses = []
    for part in bootstrap.split(","):
        try:
            addresses.append(parse_address(part))
        except ValueError:
            raise BadOption(
                f"bootstrap: '{part.strip()}' is not an address; write HOST:PORT, such as localhost:9092"
            ) from None
    return tuple(addresses)
