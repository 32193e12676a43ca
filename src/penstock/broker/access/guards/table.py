"""The table: for each API, what a client must be allowed to do, as Apache Kafka 4.3.1 checks it.

An empty row asks nothing: who may connect may ask it. `InHandler` says that the handler asks by itself, and what. Rows are
checked from left to right; the first that refuses the whole request decides its error.
"""

from collections.abc import Mapping
from typing import Any, Final

from penstock.broker.access.guards import configs, groups, topics, transactions
from penstock.broker.access.guards.forms import Asker, Each, Hides, Needs, Step
from penstock.model.acl import Operation, ResourceType
from penstock.model.api_keys import ApiKey

ALTER = Operation.ALTER
ALTER_CONFIGS = Operation.ALTER_CONFIGS
CLUSTER_ACTION = Operation.CLUSTER_ACTION
DELETE = Operation.DELETE
DESCRIBE = Operation.DESCRIBE
DESCRIBE_CONFIGS = Operation.DESCRIBE_CONFIGS
READ = Operation.READ
WRITE = Operation.WRITE
GROUP = ResourceType.GROUP
TOPIC = ResourceType.TOPIC
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


class InHandler:
    """The handler asks by itself."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __call__(self, asker: Asker, request: Any, response: "type[Any]") -> None:
        pass


OF_BROKERS: Final = (Needs(CLUSTER_ACTION),)
"""Between brokers: their principal is a super user, or has ClusterAction."""
OF_MEMBERS: Final = (Needs(READ, on=GROUP, named="group_id"),)

GUARDS: Final[Mapping[int, tuple[Step, ...]]] = {
    # --- records
    ApiKey.PRODUCE: (
        InHandler("Write on the transactional id, else every partition is refused; Write on each topic"),
    ),
    ApiKey.FETCH: (
        InHandler("Read on each topic; of followers ClusterAction, else every partition is refused"),
    ),
    ApiKey.LIST_OFFSETS: (Each(DESCRIBE, TOPIC, "topics", "topics", also={"timestamp": -1, "offset": -1}),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        Each(DESCRIBE, TOPIC, "topics", "topics", name="topic", unless=CLUSTER_ACTION),
    ),
    ApiKey.DELETE_RECORDS: (Each(DELETE, TOPIC, "topics", "topics", also={"low_watermark": -1}),),
    ApiKey.DESCRIBE_PRODUCERS: (Each(READ, TOPIC, "topics", "topics"),),
    # --- topics
    ApiKey.METADATA: (topics.metadata,),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (topics.describe_partitions,),
    ApiKey.CREATE_TOPICS: (topics.restores, topics.create),
    ApiKey.DELETE_TOPICS: (topics.delete,),
    ApiKey.CREATE_PARTITIONS: (topics.restores, Each(ALTER, TOPIC, "topics", "results")),
    ApiKey.ELECT_LEADERS: (Needs(ALTER),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (Needs(ALTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (Needs(DESCRIBE),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (Needs(ALTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (Needs(DESCRIBE),),
    # --- groups
    ApiKey.FIND_COORDINATOR: (groups.find_coordinator,),
    ApiKey.JOIN_GROUP: OF_MEMBERS,
    ApiKey.SYNC_GROUP: OF_MEMBERS,
    ApiKey.HEARTBEAT: OF_MEMBERS,
    ApiKey.LEAVE_GROUP: OF_MEMBERS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (*OF_MEMBERS, groups.subscribes),
    ApiKey.OFFSET_COMMIT: (*OF_MEMBERS, Each(READ, TOPIC, "topics", "topics")),
    ApiKey.OFFSET_FETCH: (groups.fetch_offsets,),
    ApiKey.OFFSET_DELETE: (
        Needs(DELETE, on=GROUP, named="group_id"),
        Each(READ, TOPIC, "topics", "topics"),
    ),
    ApiKey.DESCRIBE_GROUPS: (Each(DESCRIBE, GROUP, "groups", "groups", name="group_id"),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        Each(DESCRIBE, GROUP, "group_ids", "groups", name="group_id"),
        groups.hide_members,
    ),
    ApiKey.LIST_GROUPS: (Hides(DESCRIBE, GROUP, "groups", name="group_id", unless=DESCRIBE),),
    ApiKey.DELETE_GROUPS: (Each(DELETE, GROUP, "groups_names", "results", name="group_id"),),
    # --- transactions
    ApiKey.INIT_PRODUCER_ID: (transactions.init_producer_id,),
    ApiKey.ADD_PARTITIONS_TO_TXN: (transactions.add_partitions,),
    ApiKey.ADD_OFFSETS_TO_TXN: (
        Needs(WRITE, on=TRANSACTIONAL_ID, named="transactional_id"),
        Needs(READ, on=GROUP, named="group_id"),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        Needs(WRITE, on=TRANSACTIONAL_ID, named="transactional_id"),
        Needs(READ, on=GROUP, named="group_id"),
        Each(READ, TOPIC, "topics", "topics"),
    ),
    ApiKey.END_TXN: (Needs(WRITE, on=TRANSACTIONAL_ID, named="transactional_id"),),
    ApiKey.WRITE_TXN_MARKERS: (Needs(ALTER, CLUSTER_ACTION),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Each(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", "transaction_states", name="transactional_id"),
        Hides(DESCRIBE, TOPIC, "transaction_states", "topics", name="topic"),
    ),
    ApiKey.LIST_TRANSACTIONS: (
        Hides(DESCRIBE, TRANSACTIONAL_ID, "transaction_states", name="transactional_id"),
    ),
    # --- configs, users, rules, quotas
    ApiKey.DESCRIBE_CONFIGS: (configs.describe,),
    ApiKey.ALTER_CONFIGS: (configs.alter,),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (configs.alter,),
    ApiKey.LIST_CONFIG_RESOURCES: (Needs(DESCRIBE_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Needs(DESCRIBE),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (Needs(ALTER),),
    ApiKey.DESCRIBE_ACLS: (Needs(DESCRIBE),),
    ApiKey.CREATE_ACLS: (Needs(ALTER),),
    ApiKey.DELETE_ACLS: (Needs(ALTER),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (Needs(DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Needs(ALTER_CONFIGS),),
    ApiKey.UPDATE_FEATURES: (Needs(ALTER),),
    ApiKey.CREATE_DELEGATION_TOKEN: (InHandler("CreateTokens on the user, for a token of somebody else"),),
    ApiKey.RENEW_DELEGATION_TOKEN: (InHandler("the token's owner or renewers"),),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (InHandler("the token's owner or renewers"),),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        InHandler("Describe on the token, or DescribeTokens on its owner; the others are left out"),
    ),
    # --- between brokers
    ApiKey.LEADER_AND_ISR: OF_BROKERS,
    ApiKey.STOP_REPLICA: OF_BROKERS,
    ApiKey.UPDATE_METADATA: OF_BROKERS,
    ApiKey.CONTROLLED_SHUTDOWN: OF_BROKERS,
    ApiKey.ALTER_PARTITION: OF_BROKERS,
    ApiKey.ALLOCATE_PRODUCER_IDS: OF_BROKERS,
    # --- for everybody
    ApiKey.API_VERSIONS: (),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.DESCRIBE_CLUSTER: (),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (),
    ApiKey.PUSH_TELEMETRY: (),
}
