"""What an application of streams, ours or Kafka Streams', leaves in a cluster: topics of its own and a group with offsets."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from typing import Final

from penstock.admin.groups.model import Member
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.reset import Plan, Target, plan, within_logs
from penstock.admin.topic_changes import delete_topics
from penstock.client.cluster_client import GROUP, ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, UserError
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import in_hash_map_order, partitions_in_hash_map_order
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_ENDS: Final = (
    "-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic",
)  # fmt: skip
_FOREIGN_KEYS: Final = re.compile(r".*-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic")
GONE: Final = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID})


class Application:
    """A stopped application in its cluster. Planning changes nothing; `commit`, `remove_members` and `delete` do."""

    def __init__(self, client: ClusterClient, application_id: str) -> None:
        self.id = application_id
        self._client = client
        self._groups = GroupRequests(client)
        self._topics = {topic.name or "" for topic in client.metadata(None).topics if not topic.error_code}

    def members(self) -> list[Member]:
        """Who is still in its group; nobody where there is no such group. Refused where it is a group of another kind."""
        found = self._groups.describe([self.id])[self.id]
        if isinstance(found, Refused):
            if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise found
            return []
        return found.members

    def remove_members(self, members: Iterable[Member]) -> None:
        remove_members(self._client, self.id, [member.member_id for member in members])

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Those of these topics that are not there."""
        return [name for name in topics if name not in self._topics]

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Of those topics that are there, in the order in which Kafka's tool tells them."""
        known = self._groups.partitions(name for name in topics if name in self._topics)
        return partitions_in_hash_map_order(
            TopicPartition(name, number) for name, numbers in known.items() for number in numbers
        )

    def planned(self, partitions: list[TopicPartition], target: Target) -> Plan:
        """As `groups.reset.plan`; but a partition without an offset is shifted from where a consumer would begin."""
        if target.form != "shift":
            return plan(self._groups, self.id, partitions, target)
        current = plan(self._groups, self.id, partitions, Target("current")).offsets
        return within_logs(
            self._groups, {one: offset + (target.value or 0) for one, offset in current.items()}
        )

    def planned_at(self, partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int]) -> Plan:
        """Those of the partitions that have an offset there."""
        return within_logs(self._groups, {one: offsets[one] for one in partitions if one in offsets})

    def commit(self, offsets: dict[TopicPartition, int]) -> None:
        self._groups.commit(self.id, offsets)

    def internal_topics(self) -> list[str]:
        return internal_topics(in_hash_map_order(self._topics), self.id)

    def delete(self, topics: list[str]) -> None:
        """UserError where one is not deleted; one that has gone meanwhile is."""
        for name, why in delete_topics(self._client, topics).items():
            if why is not None and why.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UserError(f"the topic {name} was not deleted: {why}")


def offsets_in_csv(text: str, name: str) -> dict[TopicPartition, int]:
    """Lines of TOPIC,PARTITION,OFFSET. UserError, which tells the line of the file `name`."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not any(value.strip() for value in row):
            continue
        try:
            topic, partition, offset = (value.strip() for value in row)
            found[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise UserError(
                f"line {number} of {name}, '{','.join(row)}', is not TOPIC,PARTITION,OFFSET"
            ) from None
    return found


def internal_topics(names: Iterable[str], application_id: str) -> list[str]:
    """Those that an application of this id has made, in the order given."""
    prefix = f"{application_id}-"
    return [
        name
        for name in names
        if name.startswith(prefix) and (name.endswith(_ENDS) or _FOREIGN_KEYS.fullmatch(name))
    ]


def remove_members(client: ClusterClient, group_id: str, member_ids: Iterable[str]) -> None:
    """Of a classic group: what is left of programs that ended without a word."""
    members = [MemberIdentity(member_id=each, reason="removed by an administrator") for each in member_ids]
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = client.ask_coordinator(
        GROUP, group_id, request, LeaveGroupResponse, codes=lambda answer: [answer.error_code]
    )
    for code in (answer.error_code, *(member.error_code for member in answer.members)):
        if code not in GONE:
            raise refused(code)
