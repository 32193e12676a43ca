"""What can be set about transactions. Names, defaults and meaning are those of Kafka's broker options."""

from typing import NamedTuple


class TransactionOptions(NamedTuple):
    max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    expiration_check_interval_ms: int = 3_600_000
    two_phase_commit: bool = False
    """Whether a producer may ask for transactions that never time out."""
    transaction_version: int = 2
    """The feature level that the cluster has agreed on: aborts that no client has asked for go by it."""
