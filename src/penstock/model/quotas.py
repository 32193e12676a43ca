"""Client quotas: whom they are for, and what they limit, by Kafka's names."""

from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

LARGEST: Final = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
    CONNECTION_CREATION_RATE: 2**31 - 1,
}
"""The bound of those that are whole numbers; None: a fraction is allowed, and no bound."""
OF_CLIENTS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
OF_IPS: Final = (CONNECTION_CREATION_RATE,)

Entity = frozenset[tuple[str, str | None]]
"""Each part is a type and a name; the name None is the default of that type."""


def entity(**names: str | None) -> Entity:
    """`entity(user="ana", client_id=None)`: the default for each client id of ana."""
    return frozenset((kind.replace("_", "-"), name) for kind, name in names.items())
