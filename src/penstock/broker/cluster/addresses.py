"""Where brokers are reached: by clients of each listener, and by one another."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.model.endpoints import Endpoint
from penstock.net.connection import Connection

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithConfig, WithImage
    from penstock.net.peers import Peers

    class Needs(WithBrokerId, WithConfig, WithImage, Protocol): ...


class BrokerAddress(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None


class Addresses:
    def __init__(self, node: "Needs", advertised: dict[str, Endpoint]) -> None:
        self._node = node
        self._advertised = advertised
        self._peers: Peers | None = None

    def for_clients(self, connection: Connection) -> list[BrokerAddress]:
        """Every broker as a client of this listener should reach it.

        Where a single broker advertises nothing, the client is told the address it came through: it works by definition.
        In a cluster all brokers say the same of each one: a client that hears two addresses gives up the connection.
        """
        addresses: list[BrokerAddress] = []
        for broker in self._node.image.brokers.values():
            if broker.id == self._node.broker_id and self._peers is None:
                endpoint = self._advertised.get(connection.listener_name)
                host = endpoint.host if endpoint is not None else connection.local_host
                port = endpoint.port if endpoint is not None else connection.local_port
                addresses.append(BrokerAddress(broker.id, host, port, broker.rack))
            elif connection.listener_name in broker.endpoints:
                other = broker.endpoints[connection.listener_name]
                addresses.append(BrokerAddress(broker.id, other.host, other.port, broker.rack))
        return addresses

    def tell(self, peers: "Peers") -> None:
        """In a cluster: whom to keep informed, now and at each change."""
        self._peers = peers
        self.changed()

    def changed(self) -> None:
        """Other brokers have come, gone or moved."""
        assert self._peers is not None
        listener = inter_broker_listener(self._node.config)
        for broker in self._node.image.brokers.values():
            endpoint = broker.endpoints.get(listener) or next(iter(broker.endpoints.values()), None)
            if endpoint is not None and broker.id != self._node.broker_id:
                self._peers.set_address(broker.id, endpoint.host, endpoint.port)
