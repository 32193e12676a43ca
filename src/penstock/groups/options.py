"""What can be set about groups. Names, defaults and meaning are those of Kafka's broker options."""

from typing import NamedTuple


class GroupOptions(NamedTuple):
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    new_member_join_timeout_ms: int = 300_000
    """A member that has joined but was never answered is given up after this long. A constant in Kafka,
    too."""
    consumer_session_timeout_ms: int = 45_000
    """From here on: groups of the newer protocol."""
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_assignment_interval_ms: int = 1_000
    consumer_migration_policy: str = "BIDIRECTIONAL"
    """DISABLED, UPGRADE, DOWNGRADE or BIDIRECTIONAL."""
    consumer_regex_refresh_interval_ms: int = 600_000

    @property
    def allows_upgrade(self) -> bool:
        return self.consumer_migration_policy.upper() in ("UPGRADE", "BIDIRECTIONAL")

    @property
    def allows_downgrade(self) -> bool:
        return self.consumer_migration_policy.upper() in ("DOWNGRADE", "BIDIRECTIONAL")

    @property
    def allows_classic_members(self) -> bool:
        """Whether members of the classic protocol may join a consumer group."""
        return self.consumer_migration_policy.upper() != "DISABLED"
