"""The states of a transaction, what may follow what, and all that is known of a transactional id."""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from penstock.coordination.form import NO_PRODUCER_ID
from penstock.model.ids import TopicPartition

NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
EPOCH_MAX: Final = 32_767
"""Kept back by the coordinator, to fence whoever has the last epoch that a client may have."""
CLIENT_EPOCH_MAX: Final = EPOCH_MAX - 1
NO_TIMEOUT_MS: Final = 2_147_483_647
"""The timeout of a transaction in two phases: somebody outside decides, however long that takes."""
EPOCH_PER_TRANSACTION: Final = 2
"""From this transaction version on, each transaction has an epoch of its own."""


class TransactionState(IntEnum):
    """The numbers are those of the records. The last two are Kafka's for moments that do not exist here: an id that
    is forgotten is gone with its record, and fencing is one step with the abort that it leads to."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_S = TransactionState

NAMES: Final = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in _S}
"""As people and the APIs that list and describe call them: `PrepareCommit`."""

SETTLED: Final = frozenset((_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT))
"""No transaction is open: a new one may begin, the producer may change, the id may be forgotten."""
ENDING: Final = frozenset((_S.PREPARE_COMMIT, _S.PREPARE_ABORT))
"""The end is decided and the markers are on their way: who wants something else comes again."""

MAY_FOLLOW: Final = {
    _S.EMPTY: SETTLED,  # InitProducerId
    _S.ONGOING: SETTLED | {_S.ONGOING},  # AddPartitionsToTxn, AddOffsetsToTxn
    _S.PREPARE_COMMIT: frozenset((_S.ONGOING,)),  # EndTxn
    # EndTxn, a timeout, InitProducerId; from a settled state only by a client that cannot know whether its first
    # batch has arrived (transaction version 2)
    _S.PREPARE_ABORT: SETTLED | {_S.ONGOING},
    _S.COMPLETE_COMMIT: frozenset((_S.PREPARE_COMMIT,)),  # all markers are written
    _S.COMPLETE_ABORT: frozenset((_S.PREPARE_ABORT,)),
}


class TransactionMetadata(NamedTuple):
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last change, by which one who has missed the change of his id is known."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that takes over once the markers are written, as the epochs of the present one are used up."""
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= CLIENT_EPOCH_MAX


def move(metadata: TransactionMetadata, state: TransactionState, **changes: Any) -> TransactionMetadata:
    """The metadata in its next state; a step that the table does not know is a bug."""
    if metadata.state not in MAY_FOLLOW[state]:
        raise AssertionError(f"a transaction cannot go from {NAMES[metadata.state]} to {NAMES[state]}")
    changes.setdefault("previous_producer_id", metadata.producer_id)
    return metadata._replace(state=state, **changes)
