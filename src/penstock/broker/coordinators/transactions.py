"""The host of the transaction coordinator: it writes the markers that its shards ask for, and checks transactional batches."""

from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.coordinators.admission import Admissions
from penstock.broker.coordinators.host import CoordinatorHost
from penstock.broker.coordinators.markers import MarkerWriter
from penstock.coordination.form import Outcome
from penstock.metadata.image import Topic
from penstock.model.internal_topics import TRANSACTION_STATE

if TYPE_CHECKING:
    from penstock.broker.coordinators.admission import Needs as AdmissionNeeds
    from penstock.broker.coordinators.host import Needs as HostNeeds
    from penstock.broker.coordinators.markers import Needs as MarkerNeeds
    from penstock.broker.facets import WithConfig
    from penstock.transactions.markers import MarkersToWrite
    from penstock.transactions.options import TransactionOptions
    from penstock.transactions.shard import TransactionShard

    class Needs(AdmissionNeeds, HostNeeds, MarkerNeeds, Protocol): ...


COMMIT_TIMEOUT_SECONDS: Final = 5.0
"""An answer waits this long for the followers."""
COMPLETE_AGAIN_SECONDS: Final = 1.0
"""All markers are written, but the coordinator's own log has too few replicas in sync to say so."""


class TransactionHost(CoordinatorHost["TransactionShard"]):
    topic_name = TRANSACTION_STATE
    commit_timeout_s = COMMIT_TIMEOUT_SECONDS

    def __init__(self, node: "Needs") -> None:
        super().__init__(node)
        self.admissions: Final = Admissions(node, self)
        self.admit: Final = self.admissions.admit
        self._markers = MarkerWriter(node, self._markers_written)

    def new_shard(self, index: int) -> "TransactionShard":
        from penstock.transactions.shard import TransactionShard

        return TransactionShard(options=_options(self._node), partition_index=index)

    async def make_topic(self) -> Topic:
        return await self._node.topics.transaction_state()

    def topic_deleted(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            for index, shard in tuple(self._shards.items()):
                self._give_up(index, shard)

    def close(self) -> None:
        super().close()
        self._markers.close()
        self.admissions.close()

    # --- markers

    def run_errand(self, index: int, errand: object) -> None:
        from penstock.transactions.markers import MarkersToWrite

        assert isinstance(errand, MarkersToWrite)
        self._markers.begin(index, errand)

    def _markers_written(self, index: int, errand: "MarkersToWrite") -> None:
        shard = self._shards.get(index)
        if shard is not None:
            self._complete(index, shard, errand)

    def _complete(self, index: int, shard: "TransactionShard", errand: "MarkersToWrite") -> None:
        if self._shards.get(index) is not shard:
            return  # whoever loads it next begins again, and may still be writing: the next transaction must wait for that
        if self.can_write(index):
            self._act_unasked(index, shard, shard.markers_written(errand, self._now_ms()))
        else:
            self._node.loop.call_later(COMPLETE_AGAIN_SECONDS, self._complete, index, shard, errand)

    def _give_up(self, index: int, shard: "TransactionShard", undone: Outcome | None = None) -> None:
        self._markers.drop(index)
        super()._give_up(index, shard, undone)


def _options(node: "WithConfig") -> "TransactionOptions":
    from penstock.transactions.options import TransactionOptions

    get = node.config.get
    return TransactionOptions(
        max_timeout_ms=get("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=get("transactional.id.expiration.ms"),
        expiration_check_interval_ms=get("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit=get("transaction.two.phase.commit.enable"),
    )
