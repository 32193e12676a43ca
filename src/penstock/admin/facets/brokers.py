"""`cluster.brokers` and `cluster.health`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.admin.clients import ClusterClients
from penstock.admin.elections import ELECTIONS, elect_leaders
from penstock.admin.health import Health, examine
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused
from penstock.model.ids import TopicPartition
from penstock.wire.messages.metadata import MetadataResponse


class Broker(NamedTuple):
    """A broker that is there."""

    id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    """Who is there."""

    cluster_id: str | None
    controller: int | None
    """None while there is none."""
    brokers: tuple[Broker, ...]


class Brokers:
    """The brokers of a cluster."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def describe(self) -> ClusterDescription:
        """The cluster's id, its controller and its brokers by id.

        >>> cluster.brokers.describe().controller
        1
        """

        def ask(client: ClusterClient) -> MetadataResponse:
            return client.metadata([])

        found = self._clients.call(ask)
        brokers = sorted(Broker(one.node_id, one.host, one.port, one.rack) for one in found.brokers)
        return ClusterDescription(
            found.cluster_id,
            found.controller_id if found.controller_id >= 0 else None,
            tuple(brokers),
        )

    def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, Refused | None]:
        """Gives partitions (or all) their preferred leader back; None where that worked, else why not. `unclean` takes any
        replica that is there where none in sync is: records may be lost.

        >>> cluster.brokers.elect_leaders([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): None}
        """
        asked = None if partitions is None else list(partitions)
        election = ELECTIONS["UNCLEAN" if unclean else "PREFERRED"]
        return self._clients.change(lambda client: elect_leaders(client, election, asked))

    # The last one: below it, `list` would be this method.
    def list(self) -> list[Broker]:
        """The brokers by id.

        >>> [broker.id for broker in cluster.brokers.list()]
        [1, 2, 3]
        """
        return list(self.describe().brokers)


class HealthChecks:
    """Whether a cluster is healthy."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def examine(self) -> Health:
        """Asks every broker. Partitions that are offline, under-replicated, below min ISR or damaged are in the result.

        >>> cluster.health.examine().is_healthy
        True
        """
        return self._clients.call(examine)
