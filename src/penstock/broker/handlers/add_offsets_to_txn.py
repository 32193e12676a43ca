"""API 25 AddOffsetsToTxn, versions 0–4: Add the offsets of a group to a transaction.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.coordination.placement import partition_for
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups, WithTransactions

    class Needs(WithGroups, WithTransactions, Protocol): ...


REQUEST = AddOffsetsToTxnRequest
RESPONSE = AddOffsetsToTxnResponse


async def handle(node: "Needs", call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    offsets = await node.groups.ensure_topic()
    index = partition_for(request.group_id, len(offsets.partitions))
    context = context_of(call)
    answer: AddOffsetsToTxnResponse = await node.transactions.answer(
        request.transactional_id,
        lambda shard, ticket, now_ms: shard.add_offsets(
            request, context, ticket, now_ms, offsets_partition=index
        ),
    )
    return answer
