"""How the transcripts of groups call a GroupShard and read its records.

A request is one of group g, and a JoinGroup that of a consumer of `orders`, unless it says otherwise (`DEFAULTS`).
Maps are shorter than Kafka's lists: `protocols={range=subscription(orders)}`, `assignments={m1=assignment(orders:0)}`, and
in replies and records `members={m1=…}`, where a static member is `instance:m1`.

Offsets are written short: `offsets={orders-0=5 orders-1=6}` in a commit, `partitions=[orders-0]` in a fetch (none: all)
or a delete, and a reply has a field for each partition: `orders-0=5`, `orders-0=UNKNOWN_TOPIC_OR_PARTITION`,
`orders-0={offset=5 leader_epoch=1 metadata=m}`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.groups import records
from penstock.groups.consumer.records import is_consumer_key
from penstock.groups.options import GroupOptions
from penstock.groups.shard import GroupShard
from penstock.model.errors import ErrorCode
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest
from penstock.wire.messages.leave_group import LeaveGroupRequest
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import OffsetCommitRequest
from penstock.wire.messages.offset_delete import OffsetDeleteRequest
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup
from penstock.wire.messages.sync_group import SyncGroupRequest
from penstock.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from simulation.consumer_protocol import subscription
from simulation.transcript_text import build, plain
from simulation.transcripts import Adapter
from tests.unit.groups.consumer import forms
from tests.unit.groups.harness import FakeTopics

OFFSET_APIS = ("OffsetCommit", "TxnOffsetCommit", "OffsetFetch", "OffsetDelete")
TOPIC_IDS_FROM = 10

DEFAULTS: dict[str, dict[str, Any]] = {
    "JoinGroup": {
        "session_timeout_ms": "10000",
        "rebalance_timeout_ms": "60000",
        "protocol_type": "consumer",
        "protocols": {"range": subscription("orders")},
    },
}
PAIRS = {"protocols": ("name", "metadata"), "assignments": ("member_id", "assignment")}


class GroupAdapter(Adapter):
    apis = {  # noqa: RUF012
        **forms.APIS,
        "JoinGroup": (JoinGroupRequest, "join_group"),
        "SyncGroup": (SyncGroupRequest, "sync_group"),
        "Heartbeat": (HeartbeatRequest, "heartbeat"),
        "LeaveGroup": (LeaveGroupRequest, "leave_group"),
        "OffsetCommit": (OffsetCommitRequest, "commit_offsets"),
        "TxnOffsetCommit": (TxnOffsetCommitRequest, "txn_commit_offsets"),
        "OffsetFetch": (OffsetFetchRequestGroup, "fetch_offsets"),
        "OffsetDelete": (OffsetDeleteRequest, "delete_offsets"),
        "ListGroups": (ListGroupsRequest, "list_groups"),
        "DescribeGroups": (DescribeGroupsRequest, "describe_group"),
        "DeleteGroups": (DeleteGroupsRequest, "delete_group"),
    }

    told_in_full = frozenset(OFFSET_APIS)

    def __init__(self) -> None:
        super().__init__()
        self.topics = FakeTopics(orders=3, payments=1)

    def new_shard(self, options: Mapping[str, str]) -> GroupShard:
        kinds = {name: type(value) for name, value in GroupOptions()._asdict().items()}
        values: dict[str, Any] = {name: kinds[name](value) for name, value in options.items()}
        return GroupShard(options=GroupOptions(**values), topics=self.topics, new_id=self.new_id)

    # ── requests ────────────────────────────────────────────────────────────────────────────────────────────

    def request(self, api: str, fields: dict[str, Any], version: int) -> object:
        if api in ("DescribeGroups", "DeleteGroups", "ConsumerGroupDescribe"):
            return fields["group_id"]
        if api == "ConsumerGroupHeartbeat":
            return forms.heartbeat_request(fields)
        defaults = {} if api == "ListGroups" else {"group_id": "g"}
        fields = {**defaults, **DEFAULTS.get(api, {}), **fields}
        for name in PAIRS.keys() & fields.keys():
            fields[name] = [dict(zip(PAIRS[name], pair, strict=True)) for pair in fields[name].items()]
        if api in OFFSET_APIS:
            require_stable = fields.pop("require_stable", "false") == "true"
            fields = _with_topics(api, fields, by_id=version >= TOPIC_IDS_FROM)
            if api == "OffsetFetch":
                return build(OffsetFetchRequestGroup, fields), require_stable
        return build(self.apis[api][0], fields)

    def call(
        self, shard: Any, api: str, request: Any, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        arguments: tuple[Any, ...] = (request, context, ticket, now_ms)
        named = {}
        if api == "OffsetFetch":
            arguments, named = (request[0], context, ticket), {"require_stable": request[1]}
        elif api == "DescribeGroups":
            arguments = (request, context, ticket)
        elif api in ("OffsetDelete", "DeleteGroups", "ListGroups", "ConsumerGroupDescribe"):
            arguments = (request, ticket)
        outcome: Outcome = getattr(shard, self.apis[api][1])(*arguments, **named)
        return outcome

    def event(self, shard: Any, words: Sequence[str], now_ms: int) -> Outcome:
        match words:
            case ["topic-deleted", name]:
                self.topics.partitions.pop(name, None)
                outcome: Outcome = shard.on_topic_deleted(name)
            case ["topics", *counts]:
                self.topics.partitions = {
                    name: int(count) for name, _, count in (one.partition("=") for one in counts)
                }
                outcome = shard.on_topics_changed(now_ms)
            case _:
                return super().event(shard, words, now_ms)
        return outcome

    # ── what comes back ─────────────────────────────────────────────────────────────────────────────────────

    def view(self, api: str, response: Any, *, sparse: bool) -> Any:
        if api in forms.APIS:
            return forms.view(response, sparse=sparse)
        if api == "ListGroups":
            return {"groups": plain(response, sparse=sparse)}
        if api not in OFFSET_APIS:
            found = plain(response, sparse=sparse)
            if api == "JoinGroup" and response.members:
                found["members"] = {_who(member): bytes(member.metadata) for member in response.members}
            return found
        found = {}
        error = ErrorCode(getattr(response, "error_code", 0))
        if error is not ErrorCode.NONE:
            found["error"] = error.name
        for topic in response.topics:
            name = topic.name or topic.topic_id.rstrip(b"\0").decode()
            for partition in topic.partitions:
                found[f"{name}-{partition.partition_index}"] = _view_partition(partition)
        return found

    def describe_record(self, key: bytes, value: bytes | None) -> tuple[str, Mapping[str, object]]:
        if is_consumer_key(key):
            return forms.describe_record(key, value)
        name = records.read_key(key)
        kind, read = DESCRIBERS[type(name)]
        fields = {**name._asdict()}
        if value is None:
            return kind, {**fields, "deleted": True}
        return kind, {**fields, **plain(read(value))}


def _describe_offset(value: bytes) -> Mapping[str, object]:
    committed = records.read_offset(value)
    defaults = records.CommittedOffset(0, -1, "", 0)._asdict()
    fields = committed._asdict()
    optional = ("leader_epoch", "metadata", "expire_timestamp_ms", "topic_id")
    return {name: field for name, field in fields.items() if name not in optional or field != defaults[name]}


def _describe_group(value: bytes) -> Mapping[str, object]:
    group = records.read_group(value)
    members = {_who(member): member.assignment for member in group.members}
    return {**group._asdict(), "members": members}


def _who(member: Any) -> str:
    return f"{member.group_instance_id}:{member.member_id}" if member.group_instance_id else member.member_id


DESCRIBERS: dict[type, tuple[str, Callable[[bytes], object]]] = {
    records.OffsetKey: ("Offset", _describe_offset),
    records.GroupKey: ("GroupMetadata", _describe_group),
}
"""Type of a record's key → (what transcripts call it, reader of its value)."""


def _view_partition(partition: Any) -> Any:
    if partition.error_code:
        return ErrorCode(partition.error_code).name
    if not hasattr(partition, "committed_offset"):
        return "NONE"
    if partition.metadata or partition.committed_leader_epoch != -1:
        return {
            "offset": partition.committed_offset,
            "leader_epoch": partition.committed_leader_epoch,
            "metadata": partition.metadata,
        }
    return partition.committed_offset


def _with_topics(api: str, fields: dict[str, Any], *, by_id: bool) -> dict[str, Any]:
    if "topics" in fields:
        return fields
    places = fields.pop("offsets", None) or dict.fromkeys(fields.pop("partitions", ()))
    topics: dict[str, list[Any]] = {}
    for place, value in places.items():
        name, _, index = place.rpartition("-")
        partition: Any = {"partition_index": index}
        if api == "OffsetFetch":
            partition = index
        elif api != "OffsetDelete":
            more = value if isinstance(value, dict) else {"offset": value}
            partition |= {f"committed_{what}": one for what, one in more.items()}
        topics.setdefault(name, []).append(partition)
    named = [
        {"topic_id" if by_id else "name": name, PARTITIONS.get(api, "partitions"): found}
        for name, found in topics.items()
    ]
    return {**fields, "topics": named or ("null" if api == "OffsetFetch" else [])}


PARTITIONS = {"OffsetFetch": "partition_indexes"}
