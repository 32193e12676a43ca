"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups: groups of either protocol, as operators see them."""

from penstock.coordination.form import Outcome
from penstock.groups import describe, forget
from penstock.groups.classic.rebalance import session_alarm
from penstock.groups.consumer import describe as consumer_describe
from penstock.groups.consumer.groups import tombstones
from penstock.groups.directory import GroupDirectory
from penstock.groups.options import GroupOptions
from penstock.groups.state import GroupState
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages import consumer_group_describe
from penstock.wire.messages.describe_groups import DescribedGroup
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest


def list_groups(directory: GroupDirectory, request: ListGroupsRequest) -> list[ListedGroup]:
    groups = (directory.find(name) for name in directory.names())
    shown = [describe.listed(group) for group in groups if group is not None]
    shown += [consumer_describe.listed(group) for group in directory.consumers.all()]
    return [group for group in shown if describe.is_asked_for(group, request)]


def describe_group(directory: GroupDirectory, group_id: str, api_version: int) -> DescribedGroup:
    group = directory.find(group_id)
    if group is None:
        return describe.described_unknown(group_id, api_version=api_version)
    return describe.described(group)


def describe_consumer_group(
    directory: GroupDirectory, group_id: str, options: GroupOptions, topics: Topics
) -> consumer_group_describe.DescribedGroup:
    group = directory.consumers.get(group_id)
    if group is None:
        is_known = directory.find(group_id) is not None
        return consumer_describe.described_unknown(group_id, is_known=is_known)
    return consumer_describe.described(group, options, topics)


def delete_group(outcome: Outcome, directory: GroupDirectory, group_id: str) -> None:
    """A group that nobody is in goes with its offsets."""
    consumer = directory.consumers.get(group_id)
    if consumer is not None:
        if consumer.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        forget.forget_offsets(outcome, group_id, directory.offsets)
        outcome.records += tombstones(consumer)
        return
    group = directory.known(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    forget.forget_offsets(outcome, group_id, directory.offsets)
    forget.forget_group(outcome, group_id)
    for member_id in sorted(group.pending_members):
        outcome.alarm(session_alarm(group_id, member_id), None)
    directory.alive.pop(group_id, None)
