"""Where a group lives: the name of the topic, and the rule for the partition, which all coordinators share."""

from penstock.coordination.placement import partition_for

__all__ = ["OFFSETS_TOPIC", "partition_for"]

OFFSETS_TOPIC = "__consumer_offsets"
