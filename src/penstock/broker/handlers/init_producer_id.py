"""API 22 InitProducerId, versions 0–5: A producer id and epoch. For a transactional id, earlier producers are fenced.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithProducerIds, WithTransactions

    class Needs(WithProducerIds, WithTransactions, Protocol): ...


REQUEST = InitProducerIdRequest
RESPONSE = InitProducerIdResponse


async def handle(node: "Needs", call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    has_half = (request.producer_id == -1) != (request.producer_epoch == -1)
    if has_half or request.transactional_id == "":
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    context = context_of(call)
    try:
        producer_id = await node.producer_ids.next()
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        answer: InitProducerIdResponse = await node.transactions.answer(
            request.transactional_id,
            lambda shard, ticket, now_ms: shard.init_producer_id(
                request, context, ticket, now_ms, spare_producer_id=producer_id
            ),
        )
    except ApiError as refusal:
        return InitProducerIdResponse(error_code=refusal.code, producer_epoch=-1)
    return answer
