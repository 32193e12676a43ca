"""API 67 AllocateProducerIds, version 0: A broker of Apache Kafka asks the controller for a block of producer ids.

Penstock's brokers take their blocks from the tree themselves, in the same form: nobody gets an id that another has.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithController, WithImage, WithProducerIds

    class Needs(WithController, WithImage, WithProducerIds, Protocol): ...


REQUEST = AllocateProducerIdsRequest
RESPONSE = AllocateProducerIdsResponse


async def handle(
    node: "Needs", call: Call, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    if not node.is_controller:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    asking = node.image.brokers.get(request.broker_id)
    if asking is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if request.broker_epoch != asking.epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    block = await node.producer_ids.block_for(request.broker_id)
    return AllocateProducerIdsResponse(
        producer_id_start=block.first_id, producer_id_len=block.last_id - block.first_id + 1
    )
