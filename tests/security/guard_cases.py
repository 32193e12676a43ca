"""A request or more for each API, with the rights that it needs: what the walk beside Apache Kafka sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType
from penstock.records.build import build_batch
from penstock.wire.schema import Message, Struct

SEEN, HIDDEN, MISSING = "seen", "hidden", "missing"
GROUP, OTHER_GROUP = "readers", "other-readers"
TRANSACTION, OTHER_TRANSACTION = "writer", "other-writer"
TOPICS = (SEEN, HIDDEN)


class Right(NamedTuple):
    operation: Operation
    resource_type: ResourceType
    name: str


class Side(NamedTuple):
    """What a request needs to know of the broker that it is for."""

    ids: dict[str, bytes]
    token: bytes = b""
    """The secret of a delegation token of the admin's."""


class Case(NamedTuple):
    label: str
    version: int
    make: Callable[[Side], Message]
    rights: tuple[Right, ...]

    @property
    def response(self) -> type[Message]:
        request = self.make(Side(dict.fromkeys((*TOPICS, MISSING), bytes(15) + b"1")))
        return answer_type(type(request))


def answer_type(request: type[Message]) -> type[Message]:
    module = import_module(request.__module__)
    kind: type[Message] = getattr(module, request.__name__.removesuffix("Request") + "Response")
    return kind


def on_topic(name: str, *operations: str) -> tuple[Right, ...]:
    return tuple(Right(Operation[each], ResourceType.TOPIC, name) for each in operations)


def on_group(name: str, *operations: str) -> tuple[Right, ...]:
    return tuple(Right(Operation[each], ResourceType.GROUP, name) for each in operations)


def on_transaction(name: str, *operations: str) -> tuple[Right, ...]:
    return tuple(Right(Operation[each], ResourceType.TRANSACTIONAL_ID, name) for each in operations)


def on_user(name: str, *operations: str) -> tuple[Right, ...]:
    return tuple(Right(Operation[each], ResourceType.USER, name) for each in operations)


def on_cluster(*operations: str) -> tuple[Right, ...]:
    return tuple(Right(Operation[each], ResourceType.CLUSTER, CLUSTER_NAME) for each in operations)


def request_of(api: str, **fields: Any) -> Message:
    """`parts` of lists are given as dictionaries."""
    module = import_module(f"penstock.wire.messages.{api}")
    kind = next(
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Message) and each.__name__.endswith("Request")
        and each is not Message
    )  # fmt: skip
    return _filled(kind, fields)


def _filled(kind: Any, fields: dict[str, Any]) -> Any:
    nested = {name: inner for name, *_, inner in kind.FIELDS}
    values: dict[str, Any] = {}
    for name, value in fields.items():
        inner = nested[name]
        if isinstance(value, dict):
            value = _filled(inner, value)
        elif inner is not None and isinstance(value, Iterable):
            value = [_filled(inner, each) if isinstance(each, dict) else each for each in value]
        values[name] = value
    return kind(**values)


def case(label: str, version: int, rights: tuple[Right, ...], api: str, **fields: Any) -> Case:
    return Case(label, version, lambda side: request_of(api, **_of_side(fields, side)), rights)


class Id(NamedTuple):
    """Stands for the id of a topic, which only the broker knows."""

    topic: str


class Secret(NamedTuple):
    """Stands for that of the admin's delegation token."""


def _of_side(value: Any, side: Side) -> Any:
    if isinstance(value, Secret):
        return side.token
    if isinstance(value, Id):
        return side.ids.get(value.topic, bytes(15) + b"\x77")
    if isinstance(value, dict):
        return {name: _of_side(each, side) for name, each in value.items()}
    if isinstance(value, list):
        return [_of_side(each, side) for each in value]
    return value


def batch() -> bytes:
    return bytes(build_batch([(None, b"v", (), 1_700_000_000_000)]))


def transactional_batch() -> bytes:
    return bytes(
        build_batch(
            [(None, b"v", (), 1_700_000_000_000)],
            producer_id=987_654,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


NAMED = [{"name": name} for name in (SEEN, HIDDEN, MISSING)]
BY_ID = [{"topic_id": Id(name)} for name in (SEEN, HIDDEN, MISSING)]
ONE = [{"partition_index": 0}]


def with_part(key: str, part: dict[str, Any], names: Iterable[str] = (SEEN, HIDDEN, MISSING)) -> list[Any]:
    return [{"name": name, key: [part]} for name in names]


def ids_with_part(key: str, part: dict[str, Any]) -> list[Any]:
    return [{"topic_id": Id(name), key: [part]} for name in (SEEN, HIDDEN, MISSING)]


def resource(kind: int, name: str, **fields: Any) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, **fields}


TOPIC_CONFIGS, BROKER_CONFIGS, METRICS_CONFIGS, GROUP_CONFIGS = 2, 4, 16, 32
MEMBER = {"group_id": GROUP, "generation_id": 1, "member_id": "m"}
FETCHED = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
WAITS = {"max_wait_ms": 0, "min_bytes": 0}
EPOCH = {"partition": 0, "leader_epoch": 0}
OFFSET = {"partition_index": 0, "committed_offset": 1}
TO_COMMIT = {"transactional_id": TRANSACTION, "group_id": GROUP, "producer_id": 987_654, "producer_epoch": 0}
ZOE = {"principal_type": "User", "principal_name": "zoe"}
SUBSCRIBER = {
    "group_id": "newer", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "rebalance_timeout_ms": 10_000, "topic_partitions": [],
}  # fmt: skip

CASES = (
    # --- records
    case("produce", 9, on_topic(SEEN, "WRITE"), "produce", acks=1, timeout_ms=1000, topic_data=[
        {"name": name, "partition_data": [{"index": 0, "records": batch()}]} for name in (SEEN, HIDDEN, MISSING)]),
    case("produce by id", 13, on_topic(SEEN, "WRITE"), "produce", acks=1, timeout_ms=1000, topic_data=[
        {"topic_id": Id(name), "partition_data": [{"index": 0, "records": batch()}]}
        for name in (SEEN, HIDDEN, MISSING)]),
    case("produce in a transaction", 9, on_transaction(TRANSACTION, "WRITE") + on_topic(SEEN, "WRITE"), "produce",
        transactional_id=TRANSACTION, acks=-1, timeout_ms=1000, topic_data=[
            {"name": name, "partition_data": [{"index": 0, "records": transactional_batch()}]}
            for name in (HIDDEN, SEEN)]),
    case("produce with an id, but not in a transaction", 9, on_topic(SEEN, "WRITE"), "produce",
        transactional_id=TRANSACTION, acks=-1, timeout_ms=1000, topic_data=[
            {"name": SEEN, "partition_data": [{"index": 0, "records": batch()}]}]),
    case("fetch", 12, on_topic(SEEN, "READ"), "fetch", **WAITS, topics=[
        {"topic": name, "partitions": [FETCHED]} for name in (SEEN, HIDDEN, MISSING)]),
    case("fetch by id", 16, on_topic(SEEN, "READ"), "fetch", **WAITS, topics=[
        {"topic_id": Id(name), "partitions": [FETCHED]} for name in (SEEN, HIDDEN, MISSING)]),
    case("list offsets", 7, on_topic(SEEN, "DESCRIBE"), "list_offsets", replica_id=-1,
        topics=with_part("partitions", {"partition_index": 0, "timestamp": -1})),
    case("offset for leader epoch", 4, on_topic(SEEN, "DESCRIBE"), "offset_for_leader_epoch", replica_id=-1, topics=[
        {"topic": name, "partitions": [EPOCH]} for name in (SEEN, HIDDEN, MISSING)]),
    case("offset for leader epoch by a broker", 4, on_cluster("CLUSTER_ACTION"), "offset_for_leader_epoch",
        replica_id=2, topics=[{"topic": name, "partitions": [EPOCH]} for name in (SEEN, HIDDEN)]),
    case("delete records", 2, on_topic(SEEN, "DELETE"), "delete_records", timeout_ms=1000,
        topics=with_part("partitions", {"partition_index": 0, "offset": 0})),
    case("describe producers", 0, on_topic(SEEN, "READ"), "describe_producers", topics=[
        {"name": name, "partition_indexes": [0]} for name in (SEEN, HIDDEN, MISSING)]),
    # --- topics
    case("metadata", 12, on_topic(SEEN, "DESCRIBE"), "metadata", topics=NAMED, allow_auto_topic_creation=False,
        include_topic_authorized_operations=True),
    case("metadata with write", 12, on_topic(SEEN, "WRITE", "ALTER_CONFIGS"), "metadata", topics=NAMED,
        allow_auto_topic_creation=False, include_topic_authorized_operations=True),
    case("metadata by id", 12, on_topic(SEEN, "READ"), "metadata", topics=[
        {"topic_id": Id(name), "name": None} for name in (SEEN, HIDDEN, MISSING)], allow_auto_topic_creation=False),
    case("metadata of all", 10, on_topic(SEEN, "READ") + on_cluster("DESCRIBE"), "metadata", topics=None,
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True),
    case("metadata in version 0", 0, on_topic(SEEN, "READ"), "metadata", topics=[{"name": HIDDEN}]),
    case("metadata that creates", 12, on_topic("made-0", "DESCRIBE", "CREATE"), "metadata",
        topics=[{"name": "made-0"}, {"name": "made-1"}]),
    case("metadata that creates by the cluster", 12, on_topic("made-2", "DESCRIBE") + on_cluster("CREATE"), "metadata",
        topics=[{"name": "made-2"}, {"name": "made-3"}]),
    case("describe topic partitions", 0, on_topic(SEEN, "DESCRIBE"), "describe_topic_partitions", topics=NAMED),
    case("describe all topic partitions", 0, on_topic(SEEN, "DESCRIBE"), "describe_topic_partitions", topics=[]),
    case("create topics", 7, on_topic("new-0-0", "CREATE"), "create_topics", topics=[
        {"name": name, "num_partitions": 1, "replication_factor": 1}
        for name in ("new-0-0", "new-0-1", "new-0-2", "new-0-2")]),
    case("create topics and see their configs", 7, on_topic("new-1-0", "CREATE", "DESCRIBE_CONFIGS"), "create_topics",
        topics=[
            {"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new-1-0", "new-1-1")]),
    case("create topics by the cluster", 5, on_cluster("CREATE"), "create_topics", topics=[
        {"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new-2-0", SEEN)]),
    case("delete topics", 5, on_topic("old-0", "DELETE"), "delete_topics", timeout_ms=1000,
        topic_names=["old-0", "old-5", MISSING]),
    case("delete topics by id", 6, on_topic("old-1", "DELETE") + on_topic("old-6", "DESCRIBE"), "delete_topics",
        timeout_ms=1000, topics=[
            {"name": None, "topic_id": Id("old-1")}, {"name": None, "topic_id": Id("old-6")},
            {"name": None, "topic_id": Id("old-3")}, {"name": None, "topic_id": Id(MISSING)}, {"name": "old-4"}]),
    case("delete topics by the cluster", 5, on_cluster("DELETE"), "delete_topics", timeout_ms=1000,
        topic_names=["old-2", MISSING]),
    case("create partitions", 3, on_topic(SEEN, "ALTER"), "create_partitions", timeout_ms=1000, validate_only=True,
        topics=[{"name": name, "count": 9, "assignments": None} for name in (SEEN, HIDDEN, MISSING)]),
    case("elect leaders", 2, on_cluster("ALTER"), "elect_leaders", election_type=0, topic_partitions=[
        {"topic": SEEN, "partitions": [0]}, {"topic": MISSING, "partitions": [0]}]),
    case("alter partition reassignments", 0, on_cluster("ALTER"), "alter_partition_reassignments", topics=[
        {"name": SEEN, "partitions": [{"partition_index": 0, "replicas": None}]}]),
    case("list partition reassignments", 0, on_cluster("DESCRIBE"), "list_partition_reassignments", topics=None),
    case("alter replica log dirs", 2, on_cluster("ALTER"), "alter_replica_log_dirs", dirs=[
        {"path": "/nowhere", "topics": [{"name": SEEN, "partitions": [0]}]}]),
    case("describe log dirs", 4, on_cluster("DESCRIBE"), "describe_log_dirs", topics=[
        {"topic": SEEN, "partitions": [0]}]),
    # --- groups
    case("find coordinators of groups", 4, on_group(GROUP, "DESCRIBE"), "find_coordinator", key_type=0,
        coordinator_keys=[GROUP, OTHER_GROUP]),
    case("find the coordinator of a group", 3, on_group(GROUP, "READ"), "find_coordinator", key_type=0, key=GROUP),
    case("find coordinators of transactions", 4, on_transaction(TRANSACTION, "DESCRIBE"), "find_coordinator",
        key_type=1, coordinator_keys=[TRANSACTION, OTHER_TRANSACTION]),
    case("find the coordinator of a transaction", 2, on_transaction(TRANSACTION, "WRITE"), "find_coordinator",
        key_type=1, key=TRANSACTION),
    case("join group", 9, on_group(GROUP, "READ"), "join_group", group_id=GROUP, session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000, protocol_type="consumer", protocols=[{"name": "range", "metadata": b""}]),
    case("sync group", 5, on_group(GROUP, "READ"), "sync_group", **MEMBER, protocol_type="consumer",
        protocol_name="range"),
    case("heartbeat", 4, on_group(GROUP, "READ"), "heartbeat", **MEMBER),
    case("leave group", 5, on_group(GROUP, "READ"), "leave_group", group_id=GROUP, members=[{"member_id": "m"}]),
    case("consumer group heartbeat", 1, on_group("newer", "READ") + on_topic(SEEN, "DESCRIBE"),
        "consumer_group_heartbeat", **SUBSCRIBER, subscribed_topic_names=[SEEN]),
    case("consumer group heartbeat for two topics", 1, on_group("newer", "READ") + on_topic(SEEN, "DESCRIBE"),
        "consumer_group_heartbeat", **SUBSCRIBER, subscribed_topic_names=[SEEN, HIDDEN]),
    case("offset commit", 9, on_group(GROUP, "READ") + on_topic(SEEN, "READ"), "offset_commit", group_id=GROUP,
        topics=with_part("partitions", OFFSET)),
    case("offset commit by id", 10, on_group(GROUP, "READ") + on_topic(SEEN, "READ"), "offset_commit", group_id=GROUP,
        topics=ids_with_part("partitions", OFFSET)),
    case("offset fetch", 8, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch", groups=[
        {"group_id": name, "topics": [{"name": topic, "partition_indexes": [0]} for topic in (SEEN, HIDDEN, MISSING)]}
        for name in (GROUP, OTHER_GROUP)]),
    case("offset fetch of all", 8, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch", groups=[
        {"group_id": name, "topics": None} for name in (GROUP, OTHER_GROUP)]),
    case("offset fetch by id", 10, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch", groups=[
        {"group_id": GROUP, "topics": [
            {"topic_id": Id(topic), "partition_indexes": [0]} for topic in (SEEN, HIDDEN, MISSING)]}]),
    case("offset fetch of all by id", 10, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch",
        groups=[{"group_id": GROUP, "topics": None}]),
    case("offset fetch of one group", 7, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch",
        group_id=GROUP, topics=[{"name": topic, "partition_indexes": [0]} for topic in (SEEN, HIDDEN, MISSING)]),
    case("offset fetch of all of one group", 7, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"),
        "offset_fetch", group_id=GROUP, topics=None),
    case("offset fetch in version 1", 1, on_group(GROUP, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"), "offset_fetch",
        group_id=GROUP, topics=[{"name": topic, "partition_indexes": [0]} for topic in (SEEN, HIDDEN)]),
    case("offset delete", 0, on_group(GROUP, "DELETE") + on_topic(SEEN, "READ"), "offset_delete", group_id=GROUP,
        topics=with_part("partitions", {"partition_index": 0}, (HIDDEN, SEEN))),
    case("describe groups", 5, on_group(GROUP, "DESCRIBE"), "describe_groups", groups=[GROUP, OTHER_GROUP],
        include_authorized_operations=True),
    case("consumer group describe", 0, on_group("newer", "READ") + on_topic(SEEN, "DESCRIBE"),
        "consumer_group_describe", group_ids=["newer", OTHER_GROUP], include_authorized_operations=True),
    case("list groups", 4, on_group(GROUP, "DESCRIBE"), "list_groups"),
    case("list groups by the cluster", 4, on_cluster("DESCRIBE"), "list_groups"),
    case("delete groups", 2, on_group("nothing", "DELETE"), "delete_groups", groups_names=["nothing", OTHER_GROUP + "-"]),
    # --- transactions
    case("init producer id", 4, on_topic(SEEN, "WRITE"), "init_producer_id", transactional_id=None,
        transaction_timeout_ms=1000),
    case("init producer id by the cluster", 4, on_cluster("IDEMPOTENT_WRITE"), "init_producer_id",
        transactional_id=None, transaction_timeout_ms=1000),
    case("init producer id for transactions", 4, on_transaction("third", "WRITE"), "init_producer_id",
        transactional_id="third", transaction_timeout_ms=1000),
    case("add partitions to a transaction", 3, on_transaction(TRANSACTION, "WRITE") + on_topic(SEEN, "WRITE"),
        "add_partitions_to_txn", v3_and_below_transactional_id=TRANSACTION, v3_and_below_producer_id=987_654,
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in (SEEN, HIDDEN, MISSING)]),
    case("add one partition to a transaction", 3, on_transaction(TRANSACTION, "WRITE") + on_topic(SEEN, "WRITE"),
        "add_partitions_to_txn", v3_and_below_transactional_id=TRANSACTION, v3_and_below_producer_id=987_654,
        v3_and_below_topics=[{"name": SEEN, "partitions": [0]}]),
    case("add partitions to transactions by a broker", 4, on_cluster("CLUSTER_ACTION"), "add_partitions_to_txn",
        transactions=[{"transactional_id": TRANSACTION, "producer_id": 987_654, "producer_epoch": 0,
            "topics": [{"name": SEEN, "partitions": [0]}]}]),
    case("add offsets to a transaction", 3, on_transaction(TRANSACTION, "WRITE") + on_group(GROUP, "READ"),
        "add_offsets_to_txn", **TO_COMMIT),
    case("transactional offset commit", 3,
        on_transaction(TRANSACTION, "WRITE") + on_group(GROUP, "READ") + on_topic(HIDDEN, "READ"), "txn_offset_commit",
        **TO_COMMIT, topics=with_part("partitions", OFFSET, (MISSING, SEEN))),
    case("end of a transaction", 3, on_transaction(TRANSACTION, "WRITE"), "end_txn", transactional_id=TRANSACTION,
        producer_id=987_654),
    case("write markers", 1, on_cluster("CLUSTER_ACTION"), "write_txn_markers", markers=[
        {"producer_id": 5, "producer_epoch": 0, "topics": [{"name": MISSING, "partition_indexes": [0]}]}]),
    case("write markers by an operator", 1, on_cluster("ALTER"), "write_txn_markers", markers=[
        {"producer_id": 5, "producer_epoch": 0, "topics": [{"name": MISSING, "partition_indexes": [0]}]}]),
    case("describe transactions", 0, on_transaction(TRANSACTION, "DESCRIBE") + on_topic(SEEN, "DESCRIBE"),
        "describe_transactions", transactional_ids=[TRANSACTION, OTHER_TRANSACTION]),
    case("list transactions", 1, on_transaction(TRANSACTION, "DESCRIBE"), "list_transactions"),
    # --- configs, users, the cluster
    case("describe configs", 4, on_topic(SEEN, "DESCRIBE_CONFIGS") + on_group(GROUP, "DESCRIBE_CONFIGS"),
        "describe_configs", resources=[
            resource(TOPIC_CONFIGS, SEEN, configuration_keys=["retention.ms"]), resource(TOPIC_CONFIGS, HIDDEN),
            resource(TOPIC_CONFIGS, MISSING), resource(GROUP_CONFIGS, GROUP), resource(GROUP_CONFIGS, OTHER_GROUP),
            resource(BROKER_CONFIGS, "1", configuration_keys=["log.dirs"]), resource(METRICS_CONFIGS, "m")]),
    case("describe configs by the cluster", 4, on_cluster("DESCRIBE_CONFIGS"), "describe_configs", resources=[
        resource(TOPIC_CONFIGS, SEEN), resource(BROKER_CONFIGS, "1", configuration_keys=["log.dirs"]),
        resource(METRICS_CONFIGS, "m")]),
    case("alter configs", 2, on_topic(SEEN, "ALTER_CONFIGS"), "alter_configs", validate_only=True, resources=[
        resource(TOPIC_CONFIGS, name, configs=[{"name": "retention.ms", "value": "1000"}])
        for name in (SEEN, HIDDEN, MISSING)]),
    case("incremental alter configs", 1, on_topic(SEEN, "ALTER_CONFIGS") + on_group(GROUP, "ALTER_CONFIGS"),
        "incremental_alter_configs", validate_only=True, resources=[
            *(resource(TOPIC_CONFIGS, name, configs=[{"name": "retention.ms", "value": "1000"}])
              for name in (SEEN, HIDDEN, MISSING)),
            *(resource(GROUP_CONFIGS, name, configs=[{"name": "consumer.session.timeout.ms", "value": "50000"}])
              for name in (GROUP, OTHER_GROUP)),
            resource(BROKER_CONFIGS, "", configs=[{"name": "log.cleaner.threads", "value": "2"}]),
            resource(METRICS_CONFIGS, "m", configs=[{"name": "interval.ms", "value": "1000"}])]),
    case("incremental alter configs by the cluster", 1, on_cluster("ALTER_CONFIGS"), "incremental_alter_configs",
        validate_only=True, resources=[
            resource(TOPIC_CONFIGS, SEEN, configs=[{"name": "retention.ms", "value": "1000"}]),
            resource(METRICS_CONFIGS, "m", configs=[{"name": "interval.ms", "value": "1000"}])]),
    case("list config resources", 1, on_cluster("DESCRIBE_CONFIGS"), "list_config_resources", resource_types=[16]),
    case("describe SCRAM users", 0, on_cluster("DESCRIBE"), "describe_user_scram_credentials", users=[{"name": "zoe"}]),
    case("alter SCRAM users", 0, on_cluster("ALTER"), "alter_user_scram_credentials",
        deletions=[{"name": "zoe", "mechanism": 1}]),
    case("describe rules", 3, on_cluster("DESCRIBE"), "describe_acls", resource_type_filter=2,
        resource_name_filter="ruled", pattern_type_filter=3, principal_filter=None, host_filter=None, operation=1,
        permission_type=1),
    case("create rules", 3, on_cluster("ALTER"), "create_acls", creations=[
        {"resource_type": 2, "resource_name": "ruled", "resource_pattern_type": 3, "principal": "User:zoe", "host": "*",
         "operation": 3, "permission_type": 3}]),
    case("delete rules", 3, on_cluster("ALTER"), "delete_acls", filters=[
        {"resource_type_filter": 2, "resource_name_filter": "ruled", "pattern_type_filter": 3, "principal_filter": None,
         "host_filter": None, "operation": 1, "permission_type": 1}]),
    case("describe quotas", 1, on_cluster("DESCRIBE_CONFIGS"), "describe_client_quotas", components=[
        {"entity_type": "user", "match_type": 0, "match": "zoe"}]),
    case("alter quotas", 1, on_cluster("ALTER_CONFIGS"), "alter_client_quotas", validate_only=True, entries=[
        {"entity": [{"entity_type": "user", "entity_name": "zoe"}], "ops": [{"key": "producer_byte_rate", "value": 5.0}]}]),
    case("update features", 1, on_cluster("ALTER"), "update_features", validate_only=True, feature_updates=[
        {"feature": "no.such.feature", "max_version_level": 1, "upgrade_type": 1}]),
    case("describe cluster", 1, on_cluster("DESCRIBE"), "describe_cluster", include_cluster_authorized_operations=True),
    case("describe cluster with more rights", 1, on_cluster("ALTER", "ALTER_CONFIGS"), "describe_cluster",
        include_cluster_authorized_operations=True),
    # --- delegation tokens
    case("create a token", 3, (), "create_delegation_token", max_lifetime_ms=-1),
    case("create a token in version 1", 1, (), "create_delegation_token", max_lifetime_ms=-1, renewers=[ZOE]),
    case("create a token for somebody", 3, on_user("User:zoe", "CREATE_TOKENS"), "create_delegation_token",
        owner_principal_type="User", owner_principal_name="zoe", max_lifetime_ms=-1),
    case("create a token with a renewer that is no user", 3, (), "create_delegation_token", max_lifetime_ms=-1,
        renewers=[{"principal_type": "Group", "principal_name": "zoe"}]),
    case("describe tokens", 3, on_user("User:admin", "DESCRIBE_TOKENS"), "describe_delegation_token", owners=None),
    case("describe tokens of somebody", 3, on_user("User:zoe", "DESCRIBE_TOKENS"), "describe_delegation_token",
        owners=[ZOE]),
    case("describe tokens by rules on them", 3, (Right(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "*"),),
        "describe_delegation_token", owners=None),
    case("describe tokens of nobody", 3, (), "describe_delegation_token", owners=[]),
    case("renew a token", 2, (), "renew_delegation_token", hmac=Secret(), renew_period_ms=1_000_000),
    case("renew a token that is not there", 2, (), "renew_delegation_token", hmac=b"x", renew_period_ms=-1),
    case("expire a token", 2, (), "expire_delegation_token", hmac=Secret(), expiry_time_period_ms=2_000_000),
    case("expire a token that is not there", 2, (), "expire_delegation_token", hmac=b"x", expiry_time_period_ms=-1),
    case("telemetry", 0, (), "get_telemetry_subscriptions"),
    case("push telemetry", 0, (), "push_telemetry", client_instance_id=bytes(15) + b"\x01", subscription_id=5,
        metrics=b"x"),
)  # fmt: skip

_NAMES = {
    "name", "topic", "topic_name", "group_id", "partition_index", "partition", "partition_id", "index", "resource_name",
    "resource_type", "transactional_id", "key", "user", "feature", "num_partitions", "is_internal",
    "principal_type", "principal_name", "token_requester_principal_name",
    "authorized_operations", "cluster_authorized_operations", "topic_authorized_operations",
}  # fmt: skip
_LISTS_THAT_ARE_THERE_OR_NOT = {"configs", "members"}
_NOT_COMPARED = {
    "brokers", "node_endpoints", "endpoints", "active_producers", "aborted_transactions", "record_errors", "penstock_session",
    "replica_nodes", "isr_nodes", "offline_replicas", "subscriptions", "unknown_state_filters", "error_message",
}  # fmt: skip


def gist(value: Any, ids: dict[str, bytes]) -> Any:
    """What is refused and what is hidden: errors and names. Not in an order, which nobody promises."""
    if isinstance(value, Struct):
        found: dict[str, Any] = {}
        for field in value.__slots__:
            inner = getattr(value, field)
            if field in _NOT_COMPARED:
                continue
            if field == "topic_id":
                names = {topic_id: name for name, topic_id in ids.items()}
                found[field] = "none" if inner == bytes(16) else names.get(inner, "of a topic made since")
            elif field in _LISTS_THAT_ARE_THERE_OR_NOT:
                found[field] = bool(inner)
            elif field in _NAMES or field.endswith("error_code"):
                found[field] = inner
            elif isinstance(inner, (list, tuple)) and inner and isinstance(inner[0], Struct):
                found[field] = sorted((gist(each, ids) for each in inner), key=repr)
        return found
    return value
