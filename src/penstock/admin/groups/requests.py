"""Groups by the protocol's own requests: quicker to start than librdkafka, and with epochs and offsets to delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from penstock.admin.groups.described import from_classic, from_consumer
from penstock.admin.groups.model import Committed, Coordinator, DeletedOffsets, Description, Listing
from penstock.admin.offsets import PATIENCE_S, Position, positions
from penstock.client.clients import REQUEST_TIMEOUT_S, Connection
from penstock.client.cluster_client import GROUP, ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, by_topic
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

# From version 10 on OffsetFetch and OffsetCommit name topics by their ids.
LAST_VERSION_WITH_NAMES = 9
NOT_A_CONSUMER_GROUP = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
NO_OFFSET = -1


class GroupRequests:
    """A cluster's groups, asked over one client. Every call may raise Refused, Unreachable or UserError."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = self._client = client

    def listing(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Listing]:
        """Groups of every kind, in the brokers' order; only those of the states and types where some are given."""
        wanted_states, wanted_types = list(states), list(types)
        request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)
        found: dict[str, Listing] = {}
        for node in self._client.nodes():
            answer = self._client.ask_node(node, request, ListGroupsResponse)
            if answer.error_code:
                raise refused(answer.error_code)
            for group in answer.groups:
                listing = Listing(
                    group.group_id, group.group_type.capitalize(), group.group_state, group.protocol_type
                )
                # A broker that does not know a filter lets everything through.
                if _passes(listing.state, wanted_states) and _passes(listing.type, wanted_types):
                    found[group.group_id] = listing
        return list(found.values())

    def describe(self, group_ids: Iterable[str]) -> dict[str, Description | Refused]:
        return {group_id: self._describe(group_id) for group_id in group_ids}

    def _describe(self, group_id: str) -> Description | Refused:
        try:
            node = Coordinator(*self._client.coordinator(GROUP, group_id))
            described = self._describe_consumer_group(group_id, node)
            return described if described is not None else self._describe_classic_group(group_id, node)
        except Refused as error:
            return error

    def _describe_consumer_group(self, group_id: str, coordinator: Coordinator) -> Description | None:
        """None when it is none, or when the broker does not know the newer protocol."""
        try:
            answer = self._client.ask_coordinator(
                GROUP,
                group_id,
                ConsumerGroupDescribeRequest(group_ids=[group_id]),
                ConsumerGroupDescribeResponse,
                codes=lambda answer: [group.error_code for group in answer.groups],
            )
        except UnsupportedByBroker:
            return None
        (group,) = answer.groups
        if group.error_code in NOT_A_CONSUMER_GROUP:
            return None
        if group.error_code:
            raise refused(group.error_code, group.error_message)
        return from_consumer(group, coordinator)

    def _describe_classic_group(self, group_id: str, coordinator: Coordinator) -> Description:
        answer = self._client.ask_coordinator(
            GROUP,
            group_id,
            DescribeGroupsRequest(groups=[group_id]),
            DescribeGroupsResponse,
            codes=lambda answer: [group.error_code for group in answer.groups],
        )
        (group,) = answer.groups
        if group.error_code:
            raise refused(group.error_code, group.error_message)
        return from_classic(group, coordinator)

    def ask_coordinator(
        self, group_id: str, request: Message, answer: type[R], *, codes: Callable[[R], Iterable[int]]
    ) -> R:
        return self._client.ask_coordinator(GROUP, group_id, request, answer, codes=codes)

    def described_by_coordinator(
        self, group_id: str, request: Message, answer: type[R]
    ) -> tuple[Coordinator, Any]:
        """Who answers, and the one group of an answer that describes groups."""
        node = Coordinator(*self._client.coordinator(GROUP, group_id))
        answered: Any = self.ask_coordinator(
            group_id, request, answer, codes=lambda found: [each.error_code for each in _groups_in(found)]
        )
        (group,) = answered.groups
        if group.error_code:
            raise refused(group.error_code, group.error_message)
        return node, group

    def committed(self, group_id: str) -> dict[TopicPartition, Committed]:
        request = OffsetFetchRequest(
            group_id=group_id, topics=None, groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
        )
        answer = self._client.ask_coordinator(
            GROUP,
            group_id,
            request,
            OffsetFetchResponse,
            codes=lambda answer: [answer.error_code, *(group.error_code for group in answer.groups)],
            max_version=LAST_VERSION_WITH_NAMES,
        )
        found: OffsetFetchResponse | OffsetFetchResponseGroup = answer.groups[0] if answer.groups else answer
        if found.error_code:
            raise refused(found.error_code)
        return {
            TopicPartition(topic.name, one.partition_index): Committed(
                one.committed_offset,
                one.committed_leader_epoch if one.committed_leader_epoch >= 0 else None,
            )
            for topic in found.topics
            for one in topic.partitions
            if one.committed_offset != NO_OFFSET
        }

    def commit(self, group_id: str, offsets: dict[TopicPartition, int]) -> None:
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(name, number)],
                        committed_metadata="",
                    )
                    for number in numbers
                ],
            )
            for name, numbers in by_topic(offsets).items()
        ]
        request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=topics)
        answer = self._client.ask_coordinator(
            GROUP,
            group_id,
            request,
            OffsetCommitResponse,
            codes=lambda answer: [one.error_code for topic in answer.topics for one in topic.partitions],
            max_version=LAST_VERSION_WITH_NAMES,
        )
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise refused(one.error_code)

    def delete(self, group_ids: Iterable[str]) -> dict[str, Refused | None]:
        return {group_id: self._delete(group_id) for group_id in group_ids}

    def _delete(self, group_id: str) -> Refused | None:
        try:
            answer = self._client.ask_coordinator(
                GROUP,
                group_id,
                DeleteGroupsRequest(groups_names=[group_id]),
                DeleteGroupsResponse,
                codes=lambda answer: [one.error_code for one in answer.results],
            )
        except Refused as error:
            return error
        (result,) = answer.results
        return refused(result.error_code) if result.error_code else None

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> DeletedOffsets:
        asked = list(partitions)
        topics = [
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
            )
            for name, numbers in by_topic(asked).items()
        ]
        answer = self._client.ask_coordinator(
            GROUP,
            group_id,
            OffsetDeleteRequest(group_id=group_id, topics=topics),
            OffsetDeleteResponse,
            codes=lambda answer: [answer.error_code],
        )
        if answer.error_code:
            error = refused(answer.error_code)
            return DeletedOffsets(error, dict.fromkeys(asked, error))
        return DeletedOffsets(
            None,
            {
                TopicPartition(topic.name, one.partition_index): (
                    refused(one.error_code) if one.error_code else None
                )
                for topic in answer.topics
                for one in topic.partitions
            },
        )

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Of the topics that are there."""
        names = sorted(set(topics))
        if not names:
            return {}
        return {
            topic.name or "": sorted(one.partition_index for one in topic.partitions)
            for topic in self._client.metadata(names).topics
            if not topic.error_code
        }

    def log_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """LATEST, EARLIEST or a time in ms. -1 where nothing is as late; a partition that cannot be asked is left out."""
        found = positions(self._client, partitions, timestamp, patience_s=PATIENCE_S)
        return {one: said.offset for one, said in found.items() if isinstance(said, Position)}


@contextmanager
def open_groups(connection: Connection, *, timeout_s: float = REQUEST_TIMEOUT_S) -> Iterator[GroupRequests]:
    with ClusterClient(connection, timeout_s=timeout_s) as client:
        yield GroupRequests(client)


def _groups_in(answer: Any) -> Iterable[Any]:
    found: Iterable[Any] = answer.groups
    return found


def _passes(value: str, wanted: list[str]) -> bool:
    return not wanted or not value or value in wanted
