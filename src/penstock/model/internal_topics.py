"""The topics in which Kafka keeps its own state."""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"

INTERNAL_TOPICS = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE))
"""What Kafka calls internal when it describes a topic. `__cluster_metadata` is not a topic that a client sees."""


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
