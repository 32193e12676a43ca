"""API 8 OffsetCommit, versions 2–10: Commit the offsets of a group. Topics are named by id from version 10 on.

Every partition has its own answer.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.broker.requests.portions import Portions
from penstock.groups.offsets import refuse_commit
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = OffsetCommitRequest
RESPONSE = OffsetCommitResponse
PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)


def handle(node: "WithGroups", call: Call, request: OffsetCommitRequest) -> NowOrLater[OffsetCommitResponse]:
    context = context_of(call)
    try:
        answered = node.groups.ask(
            request.group_id,
            lambda shard, ticket, now_ms: shard.commit_offsets(request, context, ticket, now_ms),
        )
    except ApiError as refusal:
        return refuse_commit(request, refusal.code)
    return Later(_commit_later(request, answered)) if isinstance(answered, Later) else answered


def refuse(request: OffsetCommitRequest, code: ErrorCode, detail: str | None) -> OffsetCommitResponse:
    return refuse_commit(request, code)


async def _commit_later(
    request: OffsetCommitRequest, answered: Later[OffsetCommitResponse]
) -> OffsetCommitResponse:
    try:
        return await answered
    except ApiError as refusal:
        return refuse_commit(request, refusal.code)
