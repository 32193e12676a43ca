"""From where on a check speaks. Each is a rule of thumb of those who run Kafka; none is a limit of the software."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024
GB: Final = 1_000_000_000
DAY_S: Final = 86_400.0

USUAL_REPLICATION: Final = 3
REPLICAS_PER_BROKER: Final = 4_000
PARTITIONS_PER_CLUSTER: Final = 200_000
SKEW: Final = 1.5
"""How many times its even share a broker may have."""
SKEW_REPLICAS: Final = 10
"""By fewer than so many replicas nobody is burdened."""
SKEW_BYTES: Final = 10 * GB
NOT_PREFERRED_SHARE: Final = 0.1
"""Of a cluster's partitions, led by another than the preferred replica (Kafka's leader.imbalance.per.broker.percentage)."""
HOT_PARTITION: Final = 3.0
"""How many times the mean of its topic a partition may get."""
HOT_RECORDS_PER_S: Final = 100.0
"""A topic that gets less is not looked at."""
LATE_S: Final = 10.0
"""A group is late when it is behind by more than the records of so many seconds: a commit each five seconds is usual."""
LATE_RECORDS: Final = 100
DISK_USED_WARNING: Final = 0.85
DISK_USED_ERROR: Final = 0.95
DISK_FULL_SOON_S: Final = 3 * DAY_S
DISK_FULL_LATER_S: Final = 30 * DAY_S
CLOCKS_APART_S: Final = 2.0
FUTURE_S: Final = 3_600.0
SMALL_SEGMENT_BYTES: Final = 16 * MIB
SHORT_SEGMENT_MS: Final = 10 * 60_000
LARGE_MESSAGE_BYTES: Final = 10 * MIB
