"""Groups by the protocol's own requests: quicker to start than librdkafka, and with epochs and offsets to delete."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.cli.clients import Connection
from penstock.cli.cluster_client import GROUP, ClusterClient, refused
from penstock.cli.failures import Refused
from penstock.cli.groups.described import from_classic, from_consumer
from penstock.cli.groups.model import Committed, Coordinator, DeletedOffsets, Description, Listing, by_topic
from penstock.cli.wire_client import UnsupportedByBroker
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
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

# From version 10 on OffsetFetch and OffsetCommit name topics by their ids.
LAST_VERSION_WITH_NAMES = 9
NOT_A_CONSUMER_GROUP = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
NO_OFFSET = -1


class WireGroups:
    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._cluster = ClusterClient(connection, timeout_s=timeout_s)

    def close(self) -> None:
        self._cluster.close()

    def listing(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Listing]:
        wanted_states, wanted_types = list(states), list(types)
        request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)
        found: dict[str, Listing] = {}
        for node in self._cluster.nodes():
            answer = self._cluster.ask_node(node, request, ListGroupsResponse)
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
            node = Coordinator(*self._cluster.coordinator(GROUP, group_id))
            described = self._describe_consumer_group(group_id, node)
            return described if described is not None else self._describe_classic_group(group_id, node)
        except Refused as error:
            return error

    def _describe_consumer_group(self, group_id: str, coordinator: Coordinator) -> Description | None:
        """None when it is none, or when the broker does not know the newer protocol."""
        try:
            answer = self._cluster.ask_coordinator(
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
        answer = self._cluster.ask_coordinator(
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

    def committed(self, group_id: str) -> dict[TopicPartition, Committed]:
        request = OffsetFetchRequest(
            group_id=group_id, topics=None, groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
        )
        answer = self._cluster.ask_coordinator(
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
        answer = self._cluster.ask_coordinator(
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
            answer = self._cluster.ask_coordinator(
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
        answer = self._cluster.ask_coordinator(
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
        names = sorted(set(topics))
        if not names:
            return {}
        return {
            topic.name or "": sorted(one.partition_index for one in topic.partitions)
            for topic in self._cluster.metadata(names).topics
            if not topic.error_code
        }

    def log_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        asked = set(partitions)
        if not asked:
            return {}
        nodes, described = self._cluster.leaders(one.topic for one in asked)
        led: dict[int, list[TopicPartition]] = {}
        for topic in described.topics:
            for one in topic.partitions:
                partition = TopicPartition(topic.name or "", one.partition_index)
                if partition in asked and one.leader_id in nodes:
                    led.setdefault(one.leader_id, []).append(partition)
        found = {}
        for leader, mine in led.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(
                        name=name,
                        partitions=[
                            ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                            for number in numbers
                        ],
                    )
                    for name, numbers in by_topic(mine).items()
                ],
            )
            answer = self._cluster.ask_node(nodes[leader], request, ListOffsetsResponse)
            for answered in answer.topics:
                for each in answered.partitions:
                    if not each.error_code:
                        found[TopicPartition(answered.name, each.partition_index)] = each.offset
        return found


def _passes(value: str, wanted: list[str]) -> bool:
    return not wanted or not value or value in wanted
