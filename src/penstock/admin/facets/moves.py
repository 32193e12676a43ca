"""`cluster.moves`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.admin.clients import ClusterClients
from penstock.admin.moves import cluster as requests
from penstock.admin.moves.following import PARTITIONS_AT_ONCE, Plan, Show, carry_out
from penstock.admin.moves.model import Reassignment
from penstock.admin.moves.plans import with_broker_replaced, without_broker
from penstock.client.errors import Refused
from penstock.model.ids import TopicPartition


class Moves:
    """Replicas that move between brokers.

    What `drain`, `replace` and `carry_out` start goes on in the cluster when they are interrupted. Called again, they go on
    with the rest.
    """

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def ongoing(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions that are being reassigned: of these, or all.

        >>> cluster.moves.ongoing()
        {TopicPartition(topic='orders', partition=0): Reassignment(replicas=[1, 2, 3], adding=[3], removing=[1])}
        """
        asked = None if partitions is None else list(partitions)
        return self._clients.call(lambda client: requests.ongoing(client, asked))

    def start(self, assignment: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, Refused]:
        """Starts to move partitions to these brokers (the preferred leader first), and does not wait. Why, where one is refused.

        >>> cluster.moves.start({TopicPartition("orders", 0): [2, 3]})
        {}
        """
        wanted = {partition: list(brokers) for partition, brokers in assignment.items()}
        return self._clients.change(lambda client: requests.start(client, dict(wanted)))

    def cancel(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Refused]:
        """Ends reassignments: the partitions stay where they were. Why, where one is refused.

        >>> cluster.moves.cancel(cluster.moves.ongoing())
        {}
        """
        wanted: dict[TopicPartition, list[int] | None] = dict.fromkeys(partitions)
        return self._clients.change(lambda client: requests.start(client, wanted))

    def drain(
        self,
        broker: int,
        *,
        throttle: int | None = None,
        at_once: int = PARTITIONS_AT_ONCE,
        show: Show | None = None,
    ) -> int:
        """Moves every replica of a broker to the others, and waits for it; how many partitions were moved.

        >>> cluster.moves.drain(2, throttle=50_000_000)
        14
        """
        return self.carry_out(
            lambda states, racks: without_broker(states, racks, broker),
            throttle=throttle,
            at_once=at_once,
            show=show,
        )

    def replace(
        self,
        broker: int,
        *,
        substitute: int,
        throttle: int | None = None,
        at_once: int = PARTITIONS_AT_ONCE,
        show: Show | None = None,
    ) -> int:
        """Gives all that a broker keeps to another; the broker may be dead. How many partitions were moved.

        >>> cluster.moves.replace(2, substitute=4)
        14
        """
        return self.carry_out(
            lambda states, racks: with_broker_replaced(states, racks, broker, substitute),
            throttle=throttle,
            at_once=at_once,
            show=show,
        )

    def carry_out(
        self,
        plan: Plan,
        *,
        throttle: int | None = None,
        at_once: int = PARTITIONS_AT_ONCE,
        show: Show | None = None,
    ) -> int:
        """Does what a plan says, some partitions at a time, each until its replicas are in sync. `plan` gets the state of all
        partitions and the brokers with their racks, and returns the brokers of those that shall move.

        >>> cluster.moves.carry_out(lambda states, racks: {})
        0
        """
        connection = self._clients.connection
        return carry_out(connection, plan, throttle=throttle, at_once=at_once, show=show)
