"""The questions of one look: few, big, and bounded; to each broker about all that it leads or coordinates.

A broker that does not answer is not asked again in the same look, and what it would have said is missing from the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from penstock.admin.offsets import READ_UNCOMMITTED
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.errors import Refused, Unreachable
from penstock.client.group_members import assigned_partitions
from penstock.client.leaders import Leader, offset_requests, offsets_in
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.batch import HEADER_SIZE, MAGIC, read_header
from penstock.wire.messages import describe_groups as classic
from penstock.wire.messages import describe_share_group_offsets as share_offsets
from penstock.wire.messages import offset_fetch
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from penstock.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from penstock.wire.schema import Message

T = TypeVar("T")
R = TypeVar("R", bound=Message)

PARTITIONS_PER_REQUEST: Final = 2_000
GROUPS_PER_REQUEST: Final = 500
LAST_VERSION_WITH_NAMES: Final = 9
LAST_FETCH_WITH_NAMES: Final = 12
BATCH_BYTES: Final = 4096
MAX_FETCH_BYTES: Final = 4 << 20
NO_OFFSET: Final = -1
BROKER: Final = 4
METRICS_LISTENER: Final = "penstock.metrics.listener"


class ListedGroup(NamedTuple):
    name: str
    type_name: str
    state: str
    protocol: str
    coordinator: int


class Disk(NamedTuple):
    total_bytes: int | None
    usable_bytes: int | None


class Sizes(NamedTuple):
    logs: dict[tuple[int, str, int], int]
    """Bytes by broker, topic and partition."""
    disks: dict[int, Disk]


class Members(NamedTuple):
    number: int
    topics: tuple[str, ...] = ()


class WrittenAt(NamedTuple):
    """A batch: its first offset and that of the record after it, with times."""

    first_offset: int
    first_s: float
    next_offset: int
    last_s: float


class Asker:
    """One look's client. `requests` counts the questions, `silent` are the brokers that did not answer, and why."""

    def __init__(self, client: ClusterClient, nodes: Mapping[int, BrokerNode]) -> None:
        self.client = client
        self.nodes = nodes
        self.requests = 0
        self.silent: dict[int, str] = {}
        self.notes: list[str] = []

    def _ask(
        self, node_id: int, request: Message, answer: type[R], *, max_version: int | None = None
    ) -> R | None:
        node = self.nodes.get(node_id)
        if node is None or node_id in self.silent:
            return None
        self.requests += 1
        try:
            return self.client.ask_node(node, request, answer, max_version=max_version)
        except UnsupportedByBroker:
            return None
        except Unreachable as error:
            self.silent[node_id] = str(error)
        except Refused as error:
            self._note(str(error))
        return None

    def _note(self, said: str) -> None:
        if said not in self.notes:
            self.notes.append(said)

    def offsets(self, leaders: Mapping[TopicPartition, Leader], timestamp: int) -> dict[TopicPartition, int]:
        """Of those that answer. EARLIEST or LATEST."""
        found: dict[TopicPartition, int] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition, leader in leaders.items():
            by_leader.setdefault(leader.node_id, []).append(partition)
        for mine in by_leader.values():
            for some in portions(mine, PARTITIONS_PER_REQUEST):
                requests = offset_requests(
                    dict.fromkeys(some, timestamp), leaders, isolation_level=READ_UNCOMMITTED
                )
                for node_id, request in requests.items():
                    answer = self._ask(node_id, request, ListOffsetsResponse)
                    for partition, each in () if answer is None else offsets_in(answer):
                        if not each.error_code and each.offset >= 0:
                            found[partition] = each.offset
        return found

    def written_at(
        self, offsets: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, Leader]
    ) -> dict[TopicPartition, WrittenAt]:
        """Of the batch that an offset is in, when it was written by its own timestamps. Only the first bytes of each are
        asked for. Those that do not tell are left out."""
        found: dict[TopicPartition, WrittenAt] = {}
        by_leader: dict[int, dict[str, list[FetchPartition]]] = {}
        for (topic, number), offset in offsets.items():
            leader = leaders.get(TopicPartition(topic, number))
            if leader is not None:
                by_leader.setdefault(leader.node_id, {}).setdefault(topic, []).append(
                    FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=BATCH_BYTES)
                )
        for node_id, topics in by_leader.items():
            request = FetchRequest(
                max_bytes=MAX_FETCH_BYTES,
                topics=[FetchTopic(topic=name, partitions=mine) for name, mine in topics.items()],
            )
            answer = self._ask(node_id, request, FetchResponse, max_version=LAST_FETCH_WITH_NAMES)
            for topic_answer in () if answer is None else answer.responses:
                for one in topic_answer.partitions:
                    records = one.records
                    if one.error_code or records is None or len(records) < HEADER_SIZE:
                        continue
                    header = read_header(records)
                    if header.magic == MAGIC and header.base_timestamp > 0:
                        place = TopicPartition(topic_answer.topic, one.partition_index)
                        found[place] = WrittenAt(
                            header.base_offset,
                            header.base_timestamp / 1000,
                            header.base_offset + header.last_offset_delta + 1,
                            max(header.base_timestamp, header.max_timestamp) / 1000,
                        )
        return found

    def groups(self) -> list[ListedGroup]:
        """Each broker lists those that it coordinates."""
        found: dict[str, ListedGroup] = {}
        for node_id in self.nodes:
            answer = self._ask(node_id, ListGroupsRequest(), ListGroupsResponse)
            if answer is None:
                continue
            if answer.error_code:
                self._refusal("ListGroups", answer.error_code)
                continue
            for group in answer.groups:
                found[group.group_id] = ListedGroup(
                    group.group_id, group.group_type, group.group_state, group.protocol_type, node_id
                )
        return list(found.values())

    def committed(
        self, groups: Iterable[ListedGroup]
    ) -> tuple[dict[str, dict[TopicPartition, int]], dict[str, int]]:
        """The offsets of each group, and the codes of those whose offsets we were refused."""
        found: dict[str, dict[TopicPartition, int]] = {}
        failed: dict[str, int] = {}
        for node_id, some in by_coordinator(groups):
            request = offset_fetch.OffsetFetchRequest(
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(group_id=group.name, topics=None) for group in some
                ]
            )
            answer = self._ask(
                node_id, request, offset_fetch.OffsetFetchResponse, max_version=LAST_VERSION_WITH_NAMES
            )
            for group in () if answer is None else answer.groups:
                if group.error_code:
                    failed[group.group_id] = group.error_code
                    continue
                found[group.group_id] = {
                    TopicPartition(topic.name, one.partition_index): one.committed_offset
                    for topic in group.topics
                    for one in topic.partitions
                    if one.committed_offset != NO_OFFSET
                }
        return found, failed

    def shared(
        self, groups: Iterable[ListedGroup]
    ) -> dict[str, dict[TopicPartition, tuple[int, int | None]]]:
        """Of share groups: where each partition's sharing begins, and the lag where the broker says it."""
        found: dict[str, dict[TopicPartition, tuple[int, int | None]]] = {}
        for node_id, some in by_coordinator(groups):
            request = share_offsets.DescribeShareGroupOffsetsRequest(
                groups=[
                    share_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group.name, topics=None)
                    for group in some
                ]
            )
            answer = self._ask(node_id, request, share_offsets.DescribeShareGroupOffsetsResponse)
            for group in () if answer is None else answer.groups:
                found[group.group_id] = {
                    TopicPartition(topic.topic_name, one.partition_index): (
                        one.start_offset,
                        one.lag if one.lag >= 0 else None,
                    )
                    for topic in group.topics
                    for one in topic.partitions
                    if not one.error_code and one.start_offset >= 0
                }
        return found

    def members(
        self, groups: Iterable[ListedGroup], *, without_offsets: Collection[str]
    ) -> dict[str, Members]:
        """How many each has, and what those groups read that have committed nothing: of the others the offsets say it."""
        found: dict[str, Members] = {}
        by_type: dict[str, list[ListedGroup]] = {}
        for group in groups:
            by_type.setdefault(group.type_name.lower(), []).append(group)
        for type_name, mine in by_type.items():
            for node_id, some in by_coordinator(mine):
                answer = self._described(type_name, node_id, [group.name for group in some])
                for group in () if answer is None else answer.groups:
                    if not group.error_code:
                        topics = _topics_of(group) if group.group_id in without_offsets else ()
                        found[group.group_id] = Members(len(group.members), topics)
        return found

    def _described(self, type_name: str, node_id: int, names: Sequence[str]) -> Any:
        if type_name == "consumer":
            return self._ask(
                node_id, ConsumerGroupDescribeRequest(group_ids=names), ConsumerGroupDescribeResponse
            )
        if type_name == "share":
            return self._ask(node_id, ShareGroupDescribeRequest(group_ids=names), ShareGroupDescribeResponse)
        if type_name == "streams":
            return self._ask(
                node_id, StreamsGroupDescribeRequest(group_ids=names), StreamsGroupDescribeResponse
            )
        return self._ask(node_id, classic.DescribeGroupsRequest(groups=names), classic.DescribeGroupsResponse)

    def sizes(self) -> Sizes:
        logs: dict[tuple[int, str, int], int] = {}
        disks: dict[int, Disk] = {}
        for node_id in self.nodes:
            answer = self._ask(node_id, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            if answer is None or answer.error_code:
                continue
            for directory in answer.results:
                for topic in directory.topics:
                    for one in topic.partitions:
                        if not one.is_future_key:
                            logs[node_id, topic.name, one.partition_index] = one.partition_size
            totals = [one.total_bytes for one in answer.results if one.total_bytes >= 0]
            usable = [one.usable_bytes for one in answer.results if one.usable_bytes >= 0]
            disks[node_id] = Disk(sum(totals) if totals else None, sum(usable) if usable else None)
        return Sizes(logs, disks)

    def metrics_listeners(self) -> dict[int, str]:
        """Where brokers of Penstock serve their metrics, as far as they do."""
        found = {}
        for node_id in self.nodes:
            resource = DescribeConfigsResource(
                resource_type=BROKER, resource_name=str(node_id), configuration_keys=[METRICS_LISTENER]
            )
            answer = self._ask(node_id, DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
            for described in () if answer is None else answer.results:
                for config in described.configs:
                    if config.value:
                        found[node_id] = config.value
        return found

    def _refusal(self, what: str, code: int) -> None:
        from penstock.client.error_names import detail

        if code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._note(f"{what}: {detail(code)}")


def _topics_of(group: Any) -> tuple[str, ...]:
    """What the members of a described group have been assigned. Of streams groups it is not said by topic."""
    found: set[str] = set()
    for member in group.members:
        if hasattr(member, "member_assignment"):
            found.update(one.topic for one in assigned_partitions(member.member_assignment))
        else:
            assigned = getattr(member.assignment, "topic_partitions", ())
            found.update(one.topic_name for one in assigned)
    return tuple(sorted(found))


def by_coordinator(groups: Iterable[ListedGroup]) -> Iterator[tuple[int, list[ListedGroup]]]:
    found: dict[int, list[ListedGroup]] = {}
    for group in groups:
        found.setdefault(group.coordinator, []).append(group)
    for node_id, mine in found.items():
        for some in portions(mine, GROUPS_PER_REQUEST):
            yield node_id, some


def portions(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """
    >>> list(portions("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    left = iter(values)
    while some := list(islice(left, size)):
        yield some
