"""Runs `transcripts/*.txt`: what clients do, line by line, and indented below each line what comes of it.

    a: join                       client a sends JoinGroup with the member id and generation that it knows
    a: sync a=0 b=1,2             … SyncGroup as the leader, with everybody's assignment
    a: heartbeat generation=7     any field of a request can be given: group member generation instance version …
    wait 3000                     time passes, alarms go off
    restart                       the coordinator is given up and loaded again from the log

    log group g: …                a record was written
    g is Stable                   the group changed its state
    a: JoinGroup NONE …           client a was answered

To change a transcript, run the tests with REWRITE_TRANSCRIPTS=1 in the environment and read the difference.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.coordination.form import RequestContext, Ticket
from penstock.groups.records import OffsetKey, read_group, read_key, read_offset
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.groups.harness import Harness

TRANSCRIPTS = Path(__file__).parent / "transcripts"
NEWEST = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9, "fetch": 9, "describe": 6}


class Client:
    """What a client remembers between its requests."""

    def __init__(self) -> None:
        self.member = ""
        self.generation = -1


class Transcript:
    def __init__(self) -> None:
        self.harness = Harness()
        self.clients: dict[str, Client] = {}
        self.waiting: dict[Ticket, tuple[str, str]] = {}
        self.states: dict[str, str] = {}

    def run(self, line: str) -> list[str]:
        if self.waiting or self.harness.log:
            assert not line.startswith("option "), "options come first"
        first, *words = line.split()
        start, records_before = len(self.harness.outcomes), len(self.harness.log)
        if first == "option":
            name, value = words[0].split("=")
            self.harness = Harness(self.harness.options._replace(**{name: int(value)}))
        elif first == "wait":
            self.harness.advance(int(words[0]))
        elif first == "restart":
            self.harness.restart()
        else:
            self._ask(first.removesuffix(":"), words[0], words[1:])
        lines = [self._record(*record) for record in self.harness.log[records_before:]]
        lines += self._state_changes()
        for outcome in self.harness.outcomes[start:]:
            lines += [self._reply(ticket, response) for ticket, response in outcome.replies]
        return lines

    def _ask(self, name: str, verb: str, words: list[str]) -> None:
        client = self.clients.setdefault(name, Client())
        fields = dict(word.split("=", 1) for word in words if re.match(r"[a-z]+=", word))
        items = [
            word
            for word in words
            if not re.match(
                r"(group|member|generation|instance|version|session|rebalance|protocols|type|metadata)=",
                word,
            )
        ]
        ticket = self.harness.new_ticket()
        context = RequestContext(int(fields.get("version", NEWEST.get(verb, 0))), name, "/127.0.0.1")
        self.waiting[ticket] = (name, verb)
        build = getattr(self, "_" + verb.replace("-", "_"))
        api, arguments = build(client, fields, items, context)
        self.harness.do(
            getattr(self.harness.shard, api)(*(ticket if part is TICKET else part for part in arguments))
        )

    def _join(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        protocols = [
            part.partition(":") for part in fields.get("protocols", "range:orders").split(",") if part
        ]
        request = JoinGroupRequest(
            group_id=fields.get("group", "g"),
            member_id=fields.get("member", client.member),
            group_instance_id=fields.get("instance"),
            session_timeout_ms=int(fields.get("session", 10_000)),
            rebalance_timeout_ms=int(fields.get("rebalance", 60_000)),
            protocol_type=fields.get("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription(*topics.split("+")))
                for name, _, topics in protocols
            ],
        )
        return "join_group", (request, context, TICKET, self.harness.now_ms)

    def _sync(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        assignments = []
        for item in items:
            name, _, assignment = item.partition("=")
            member_id = self.clients[name].member if name in self.clients else name
            assignments.append(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment.encode())
            )
        request = SyncGroupRequest(
            group_id=fields.get("group", "g"),
            member_id=fields.get("member", client.member),
            generation_id=int(fields.get("generation", client.generation)),
            group_instance_id=fields.get("instance"),
            protocol_type=fields.get("type"),
            assignments=assignments,
        )
        return "sync_group", (request, context, TICKET, self.harness.now_ms)

    def _heartbeat(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        request = HeartbeatRequest(
            group_id=fields.get("group", "g"),
            member_id=fields.get("member", client.member),
            generation_id=int(fields.get("generation", client.generation)),
            group_instance_id=fields.get("instance"),
        )
        return "heartbeat", (request, context, TICKET, self.harness.now_ms)

    def _leave(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        member_id = fields.get("member", client.member)
        leaving = [MemberIdentity(member_id=member_id, group_instance_id=fields.get("instance"))]
        leaving += [MemberIdentity(member_id=self.clients[name].member) for name in items]
        request = LeaveGroupRequest(group_id=fields.get("group", "g"), member_id=member_id, members=leaving)
        return "leave_group", (request, context, TICKET, self.harness.now_ms)

    def _commit(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        topics = []
        for item in items:
            place, _, offset = item.partition("=")
            topic, _, partition = place.rpartition("-")
            by_id = context.api_version >= 10
            topics.append(
                OffsetCommitRequestTopic(
                    name="" if by_id else topic,
                    topic_id=topic.encode().ljust(16, b"\0") if by_id else NO_ID,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=int(partition),
                            committed_offset=int(offset),
                            committed_metadata="m" * int(fields.get("metadata", 0)),
                        )
                    ],
                )
            )
        request = OffsetCommitRequest(
            group_id=fields.get("group", "g"),
            member_id=fields.get("member", client.member),
            generation_id_or_member_epoch=int(fields.get("generation", client.generation)),
            group_instance_id=fields.get("instance"),
            topics=topics,
        )
        return "commit_offsets", (request, context, TICKET, self.harness.now_ms)

    def _fetch(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        topics = []
        for item in items:
            topic, _, partition = item.rpartition("-")
            by_id = context.api_version >= 10
            topic_id = topic.encode().ljust(16, b"\0") if by_id else NO_ID
            topics.append(
                OffsetFetchRequestTopics(
                    name="" if by_id else topic, topic_id=topic_id, partition_indexes=[int(partition)]
                )
            )
        request = OffsetFetchRequestGroup(group_id=fields.get("group", "g"), topics=topics or None)
        return "fetch_offsets", (request, context, TICKET)

    def _delete_offsets(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        topics = []
        for item in items:
            topic, _, partition = item.rpartition("-")
            partitions = [OffsetDeleteRequestPartition(partition_index=int(partition))]
            topics.append(OffsetDeleteRequestTopic(name=topic, partitions=partitions))
        return "delete_offsets", (
            OffsetDeleteRequest(group_id=fields.get("group", "g"), topics=topics),
            TICKET,
        )

    def _delete_group(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        return "delete_group", (items[0], TICKET)

    def _describe(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        return "describe_group", (items[0], context, TICKET)

    def _list(
        self, client: Client, fields: dict[str, str], items: list[str], context: RequestContext
    ) -> tuple:
        return "list_groups", (ListGroupsRequest(states_filter=items), TICKET)

    def _record(self, key: bytes, value: bytes | None) -> str:
        name = read_key(key)
        if isinstance(name, OffsetKey):
            what = f"offset {name.group} {name.topic}-{name.partition}"
            if value is None:
                return f"log {what}: deleted"
            committed = read_offset(value)
            return f"log {what}: {committed.offset} of topic id {committed.topic_id.rstrip(bytes(1)).decode() or 'none'}"
        what = f"group {name.group}"
        if value is None:
            return f"log {what}: deleted"
        group = read_group(value)
        if not group.members:
            return f"log {what}: generation {group.generation}, nobody"
        members = " ".join(f"{member.member_id}={member.assignment.decode()}" for member in group.members)
        return (
            f"log {what}: generation {group.generation}, {group.protocol}, leader {group.leader}, {members}"
        )

    def _state_changes(self) -> Iterator[str]:
        outcome = self.harness.shard.list_groups(ListGroupsRequest(), Ticket(0))
        states = {group.group_id: group.group_state for group in outcome.replies[0][1]}
        for group_id in sorted(states.keys() | self.states.keys()):
            if states.get(group_id) != self.states.get(group_id):
                yield f"{group_id} is {states.get(group_id, 'gone')}"
        self.states = states

    def _reply(self, ticket: Ticket, response: object) -> str:
        name, verb = self.waiting.pop(ticket)
        client = self.clients[name]
        if verb == "join" and response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.member, client.generation = response.member_id, response.generation_id
        return f"{name}: {verb} {SHOW[verb](response)}"


TICKET = object()


def subscription(*topics: str) -> bytes:
    parts = [b"\0\0", len(topics).to_bytes(4, "big")]
    for topic in topics:
        parts += [len(topic).to_bytes(2, "big"), topic.encode()]
    return b"".join(parts) + b"\xff\xff\xff\xff"


def code(response: object) -> str:
    return ErrorCode(response.error_code).name


def show_join(response: object) -> str:
    if response.error_code:
        return f"{code(response)} member={response.member_id}"
    who = " ".join(member.member_id for member in response.members)
    shown = f"NONE generation={response.generation_id} member={response.member_id} leader={response.leader}"
    shown += f" {response.protocol_name}"
    if response.skip_assignment:
        shown += " skip-assignment"
    return f"{shown} members={who}" if who else shown


def show_partitions(topics: object, offset: str | None = None) -> str:
    shown = []
    for topic in topics:
        for partition in topic.partitions:
            name = topic.name or topic.topic_id.rstrip(b"\0").decode()
            value = code(partition)
            if offset is not None and not partition.error_code:
                value = str(partition.committed_offset)
            shown.append(f"{name}-{partition.partition_index}={value}")
    return " ".join(shown)


def show_described(group: object) -> str:
    members = " ".join(f"{member.member_id}={member.member_assignment.decode()}" for member in group.members)
    return f"{code(group)} {group.group_state} {group.protocol_type}/{group.protocol_data} {members}".rstrip()


SHOW = {
    "join": show_join,
    "sync": lambda r: (
        code(r) if r.error_code else f"NONE {r.protocol_name} assignment={r.assignment.decode()}"
    ),
    "heartbeat": code,
    "leave": lambda r: " ".join(
        [code(r), *(f"{m.member_id or m.group_instance_id}={code(m)}" for m in r.members)]
    ),
    "commit": lambda r: show_partitions(r.topics),
    "fetch": lambda r: show_partitions(r.topics, "offset") or "nothing",
    "delete-offsets": lambda r: f"{code(r)} {show_partitions(r.topics)}".rstrip(),
    "delete-group": code,
    "describe": show_described,
    "list": lambda r: " ".join(f"{g.group_id}/{g.group_state}/{g.protocol_type}" for g in r) or "nothing",
}


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_transcript_is_what_happens(path: Path) -> None:
    text = path.read_text()
    transcript, actual = Transcript(), []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        actual.append(line)
        if line and not line.startswith("#"):
            actual += [f"    {result}" for result in transcript.run(line)]
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text("\n".join(actual) + "\n")
    assert "\n".join(actual) + "\n" == text
