"""Timeouts: transactions that are open for too long, and transactional ids that have expired."""

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.coordination.form import AlarmKey
from penstock.transactions.state import NO_TIMEOUT_MS, SETTLED, TransactionMetadata, TransactionState

EXPIRE_ALARM: Final[AlarmKey] = ("expire",)

EXPIRED_AT_ONCE_MAX: Final = 1_000
EXPIRE_AGAIN_MS: Final = 100
"""… and when the next ones are due if there are more."""


def timeout_alarm(transactional_id: str) -> AlarmKey:
    return ("timeout", transactional_id)


def timeout_at_ms(metadata: TransactionMetadata) -> int | None:
    """When an open transaction is to be aborted; None: never, or none is open."""
    if metadata.state is not TransactionState.ONGOING or metadata.timeout_ms == NO_TIMEOUT_MS:
        return None
    return metadata.start_ms + metadata.timeout_ms


def expired(transactions: Mapping[str, TransactionMetadata], *, before_ms: int) -> Iterable[str]:
    """The ids that were last used then or earlier, and have no open transaction."""
    return (
        transactional_id
        for transactional_id, metadata in transactions.items()
        if metadata.last_update_ms <= before_ms and metadata.state in SETTLED
    )
