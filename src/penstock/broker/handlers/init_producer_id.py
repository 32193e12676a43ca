"""API 22 InitProducerId, versions 0–5: a new producer id for an idempotent producer.

Transactional ids are refused until the transaction coordinator is there.
"""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = InitProducerIdRequest
RESPONSE = InitProducerIdResponse


async def handle(node: "Node", call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Penstock has no transactions yet")
    return InitProducerIdResponse(producer_id=await node.producer_ids.next(), producer_epoch=0)
