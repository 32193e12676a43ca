"""What this broker offers: one row per API with the versions it speaks and the first version that is flexible.

ApiVersions answers from this table and framing reads headers by it; a handler module of the same name does the work
(`broker/handlers/<name>.py`), so the folder listing there and this table are the same list.
"""

from typing import Final, NamedTuple

from penstock.model.api_keys import ApiKey


class Api(NamedTuple):
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    advertised_min_version: int
    between_brokers: bool
    """Only brokers of a cluster say it to one another: a node without a cluster neither offers nor takes it."""


NEVER_FLEXIBLE: Final = 32767


def _api(
    key: ApiKey,
    lowest: int,
    highest: int,
    flexible_from: int,
    *,
    advertised: int | None = None,
    between_brokers: bool = False,
) -> tuple[int, Api]:
    advertised_min_version = lowest if advertised is None else advertised
    return int(key), Api(
        key.name.lower(), lowest, highest, flexible_from, advertised_min_version, between_brokers
    )


APIS: Final[dict[int, Api]] = dict(
    [
        # Produce 0–2 carry record formats that ended with Kafka 4; they stay advertised because librdkafka before 2.8
        # takes a minimum above 0 for a broker without compression support. Apache Kafka 4 does the same.
        _api(ApiKey.PRODUCE, 3, 13, 9, advertised=0),
        _api(ApiKey.FETCH, 4, 18, 12),
        _api(ApiKey.LIST_OFFSETS, 1, 11, 6),
        _api(ApiKey.METADATA, 0, 13, 9),
        _api(ApiKey.LEADER_AND_ISR, 5, 7, 5, between_brokers=True),
        _api(ApiKey.STOP_REPLICA, 3, 4, 3, between_brokers=True),
        _api(ApiKey.UPDATE_METADATA, 7, 8, 7, between_brokers=True),
        _api(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, 3, between_brokers=True),
        _api(ApiKey.OFFSET_COMMIT, 2, 10, 8),
        _api(ApiKey.OFFSET_FETCH, 1, 10, 6),
        _api(ApiKey.FIND_COORDINATOR, 0, 6, 3),
        _api(ApiKey.JOIN_GROUP, 0, 9, 6),
        _api(ApiKey.HEARTBEAT, 0, 4, 4),
        _api(ApiKey.LEAVE_GROUP, 0, 5, 4),
        _api(ApiKey.SYNC_GROUP, 0, 5, 4),
        _api(ApiKey.DESCRIBE_GROUPS, 0, 6, 5),
        _api(ApiKey.LIST_GROUPS, 0, 5, 3),
        _api(ApiKey.SASL_HANDSHAKE, 0, 1, NEVER_FLEXIBLE),
        _api(ApiKey.API_VERSIONS, 0, 4, 3),
        _api(ApiKey.CREATE_TOPICS, 2, 7, 5),
        _api(ApiKey.DELETE_TOPICS, 1, 6, 4),
        _api(ApiKey.DELETE_RECORDS, 0, 2, 2),
        _api(ApiKey.INIT_PRODUCER_ID, 0, 5, 2),
        _api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3),
        _api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3),
        _api(ApiKey.END_TXN, 0, 5, 3),
        _api(ApiKey.WRITE_TXN_MARKERS, 1, 2, 1),
        _api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4),
        _api(ApiKey.DESCRIBE_ACLS, 1, 3, 2),
        _api(ApiKey.CREATE_ACLS, 1, 3, 2),
        _api(ApiKey.DELETE_ACLS, 1, 3, 2),
        _api(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4),
        _api(ApiKey.ALTER_CONFIGS, 0, 2, 2),
        _api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2),
        _api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 2),
        _api(ApiKey.SASL_AUTHENTICATE, 0, 2, 2),
        _api(ApiKey.CREATE_PARTITIONS, 0, 3, 2),
        _api(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2),
        _api(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2),
        _api(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2),
        _api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2),
        _api(ApiKey.DELETE_GROUPS, 0, 2, 2),
        _api(ApiKey.ELECT_LEADERS, 0, 2, 2),
        _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1),
        _api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0),
        _api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0),
        _api(ApiKey.OFFSET_DELETE, 0, 0, NEVER_FLEXIBLE),
        _api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1),
        _api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1),
        _api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0),
        _api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0),
        _api(ApiKey.ALTER_PARTITION, 2, 3, 2, between_brokers=True),
        _api(ApiKey.UPDATE_FEATURES, 0, 2, 0),
        _api(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0),
        _api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0),
        _api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0),
        _api(ApiKey.LIST_TRANSACTIONS, 0, 2, 0),
        _api(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, 0, between_brokers=True),
        _api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0),
        _api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0),
        _api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, 0),
        _api(ApiKey.PUSH_TELEMETRY, 0, 0, 0),
        _api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0),
    ]
)
