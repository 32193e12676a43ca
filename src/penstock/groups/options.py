"""What can be set about groups. Names, defaults and meaning are those of Kafka's broker options."""

from typing import NamedTuple


class GroupOptions(NamedTuple):
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    new_member_join_timeout_ms: int = 300_000
    """A member that has joined but was never answered is given up after this long. A constant in Kafka,
    too."""
