"""API 8 OffsetCommit, versions 2–10: where a group is; by topic id from version 10 on.

Every partition has its own answer.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Any

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.groups.offsets import refuse_commit
from penstock.model.errors import ApiError
from penstock.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = OffsetCommitRequest
RESPONSE = OffsetCommitResponse


def handle(node: "WithGroups", call: Call, request: OffsetCommitRequest) -> Any:
    context = context_of(call)
    try:
        answered = node.groups.ask(
            request.group_id,
            lambda shard, ticket, now_ms: shard.commit_offsets(request, context, ticket, now_ms),
        )
    except ApiError as refusal:
        return refuse_commit(request, refusal.code)
    return answered if isinstance(answered, OffsetCommitResponse) else _later(request, answered)


async def _later(request: OffsetCommitRequest, answered: Any) -> OffsetCommitResponse:
    try:
        response: OffsetCommitResponse = await answered
    except ApiError as refusal:
        return refuse_commit(request, refusal.code)
    return response
