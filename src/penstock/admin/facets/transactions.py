"""`cluster.transactions`."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.admin import transactions
from penstock.admin.clients import ClusterClients
from penstock.admin.facets.topics import there
from penstock.admin.transactions import AbortMarker, Listed, OpenTransaction, Producer, Transaction
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

HANGING_AFTER_S = 15 * 60.0
"""As long as a transaction may last, unless transaction.max.timeout.ms was changed."""


class Transactions:
    """The transactions of a cluster, and those that hang."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def describe(self, transactional_id: str) -> Transaction:
        """What a transactional id is doing. Refused with TRANSACTIONAL_ID_NOT_FOUND when there is none.

        >>> cluster.transactions.describe("billing-1").partitions
        (TopicPartition(topic='orders', partition=0),)
        """
        return self._clients.call(lambda client: transactions.described_transaction(client, transactional_id))

    def producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
    ) -> dict[TopicPartition, list[Producer]]:
        """What partitions remember of their producers: on each partition's leader, or on one broker.

        >>> cluster.transactions.producers([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): []}
        """
        asked = list(partitions)
        return self._clients.call(lambda client: transactions.producers(client, asked, broker_id=broker_id))

    def hanging(
        self, *topics: str, longer_than_s: float = HANGING_AFTER_S, broker_id: int | None = None
    ) -> list[OpenTransaction]:
        """Transactions that no coordinator will end, in these topics or in all.

        Readers of committed records wait behind them. NoSuchTopic when a topic is not there.

        >>> cluster.transactions.hanging("orders")
        []
        """

        def ask(client: ClusterClient) -> list[OpenTransaction]:
            found = there(client, topics) if topics else client.metadata().topics
            partitions = sorted(
                TopicPartition(topic.name or "", one.partition_index)
                for topic in found
                for one in topic.partitions
            )
            longer_than_ms = round(longer_than_s * 1000)
            return transactions.hanging(
                client, partitions, longer_than_ms=longer_than_ms, broker_id=broker_id
            )

        return self._clients.call(ask)

    def open_at(self, partition: TopicPartition, start_offset: int) -> OpenTransaction:
        """The open transaction that begins at an offset. UserError when there is none.

        >>> cluster.transactions.open_at(TopicPartition("orders", 0), 4711)
        OpenTransaction(partition=TopicPartition(topic='orders', partition=0), producer=Producer(...))
        """
        for producer in self.producers([partition])[partition]:
            if producer.start_offset == start_offset:
                return OpenTransaction(partition, producer)
        raise UserError(
            f"no open transaction begins at {start_offset} in {partition}: see penstock transactions hanging"
        )

    def abort(self, hanging: OpenTransaction) -> None:
        """Ends a hanging transaction: its records are never read. Do not use it for one that a producer still works on.

        >>> for one in cluster.transactions.hanging(): cluster.transactions.abort(one)
        """
        partition, producer = hanging
        marker = AbortMarker(
            partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
        )
        self._clients.change(lambda client: transactions.write_abort_marker(client, marker))

    def fence(self, transactional_id: str) -> None:
        """Shuts out the producer of a transactional id, and aborts the transaction that it has open.

        >>> cluster.transactions.fence("billing-1")
        """
        self._clients.change(lambda client: transactions.fence_producer(client, transactional_id))

    # The last one: below it, `list` would be this method.
    def list(
        self,
        *,
        longer_than_s: float | None = None,
        pattern: str | None = None,
        producer_ids: Iterable[int] = (),
    ) -> list[Listed]:
        """The transactional ids with their states; those open for longer, that match a regular expression, of some producers.

        >>> [one.state for one in cluster.transactions.list(longer_than_s=60)]
        ['Ongoing']
        """
        wanted = list(producer_ids)
        longer_than_ms = transactions.NO_DURATION if longer_than_s is None else round(longer_than_s * 1000)
        return sorted(
            self._clients.call(
                lambda client: transactions.listed_transactions(
                    client, longer_than_ms=longer_than_ms, pattern=pattern, producer_ids=wanted
                )
            )
        )
