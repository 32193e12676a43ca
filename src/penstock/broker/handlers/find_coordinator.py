"""API 10 FindCoordinator, versions 0–6: Which broker coordinates a group or a transactional id.

One key before version 4, then several. The first request creates `__consumer_offsets` or `__transaction_state`. While it cannot
be created, or while the partition has no living leader, the answer is COORDINATOR_NOT_AVAILABLE. Share groups have no
coordinator yet: such clients get a final error.
Not done: share groups.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.coordination.placement import partition_for
from penstock.metadata.image import Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAddresses, WithGroups, WithImage, WithTransactions

    class Needs(WithAddresses, WithGroups, WithImage, WithTransactions, Protocol): ...


REQUEST = FindCoordinatorRequest
RESPONSE = FindCoordinatorResponse

GROUP = 0
TRANSACTION = 1
SHARE = 2
MANY_FROM = 4


async def handle(node: "Needs", call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    many = call.api_version >= MANY_FROM
    keys = request.coordinator_keys if many else [request.key]
    found = await in_slices(lambda key: _find(node, call, request.key_type, key), keys)
    if many:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find(node: "Needs", call: Call, key_type: int, key: str) -> Coordinator:
    try:
        topic = await _topic(node, key_type)
        index = partition_for(key, len(topic.partitions))
        leader, _ = node.image.leader_and_offline(topic.name, index)
        for broker_id, host, port, _ in node.addresses.for_clients(call.connection):
            if broker_id == leader:
                return Coordinator(key=key, node_id=broker_id, host=host, port=port, error_message=None)
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name} has no leader for {key} at the moment"
        )
    except ApiError as refusal:
        return Coordinator(
            key=key, node_id=-1, port=-1, error_code=refusal.code, error_message=refusal.detail
        )


async def _topic(node: "Needs", key_type: int) -> Topic:
    if key_type == GROUP:
        return await node.groups.ensure_topic()
    if key_type == TRANSACTION:
        return await node.transactions.ensure_topic()
    if key_type == SHARE:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Penstock has no share groups yet")
    raise ApiError(ErrorCode.INVALID_REQUEST, f"{key_type} is not a type of coordinator")
