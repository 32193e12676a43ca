"""Many groups at once: who there is, and what each has committed, by a request for each broker and some hundreds of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from penstock.admin.groups.model import CONSUMER_PROTOCOLS, TYPES
from penstock.admin.groups.requests import LAST_VERSION_WITH_NAMES, NO_OFFSET
from penstock.client.cluster_client import GROUP, BrokerNode, ClusterClient
from penstock.client.error_names import refused
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

GROUPS_AT_ONCE: Final = 200


def consumer_groups(client: ClusterClient, node: BrokerNode) -> dict[str, str]:
    """State by name, of the groups of consumers that a broker coordinates."""
    answer = client.ask_node(node, ListGroupsRequest(), ListGroupsResponse)
    if answer.error_code:
        raise refused(answer.error_code)
    return {
        one.group_id: one.group_state
        for one in answer.groups
        if one.protocol_type in CONSUMER_PROTOCOLS and one.group_type.capitalize() in ("", *TYPES)
    }


def committed_of_groups(
    client: ClusterClient, nodes: Mapping[int, BrokerNode], groups: Iterable[str]
) -> dict[str, dict[TopicPartition, int]]:
    """Of groups whose coordinator answers; the others are absent."""
    found: dict[str, dict[TopicPartition, int]] = {}
    for node, names in _by_coordinator(client, nodes, sorted(groups)).items():
        for some in _portions(names):
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in some]
            )
            answer = client.ask_node(node, request, OffsetFetchResponse, max_version=LAST_VERSION_WITH_NAMES)
            for one in answer.groups:
                if not one.error_code:
                    found[one.group_id] = _offsets(one)
    return found


def _by_coordinator(
    client: ClusterClient, nodes: Mapping[int, BrokerNode], names: Sequence[str]
) -> dict[BrokerNode, list[str]]:
    coordinated: dict[BrokerNode, list[str]] = {}
    for some in _portions(names):
        answer = client.ask(
            FindCoordinatorRequest(key_type=GROUP, coordinator_keys=list(some)), FindCoordinatorResponse
        )
        if not answer.coordinators:
            raise UnsupportedByBroker("FindCoordinator for many groups, as Kafka 3.0 and later do")
        for one in answer.coordinators:
            if not one.error_code and one.node_id in nodes:
                coordinated.setdefault(nodes[one.node_id], []).append(one.key)
    return coordinated


def _portions(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), GROUPS_AT_ONCE):
        yield names[start : start + GROUPS_AT_ONCE]


def _offsets(group: OffsetFetchResponseGroup) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, one.partition_index): one.committed_offset
        for topic in group.topics
        for one in topic.partitions
        if one.committed_offset != NO_OFFSET and not one.error_code
    }
