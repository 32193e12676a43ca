"""API 65 DescribeTransactions, version 0: The state of transactions, each with its own error code.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.errors import ApiError
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithTransactions

REQUEST = DescribeTransactionsRequest
RESPONSE = DescribeTransactionsResponse


async def handle(
    node: "WithTransactions", call: Call, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    states = await in_slices(lambda each: _describe(node, each), request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=states)


async def _describe(node: "WithTransactions", transactional_id: str) -> TransactionState:
    try:
        (state,) = await node.transactions.answer(
            transactional_id,
            lambda shard, ticket, now_ms: shard.describe([transactional_id], ticket, now_ms),
            reads_only=True,
        )
        assert isinstance(state, TransactionState)
    except ApiError as refusal:
        return TransactionState(transactional_id=transactional_id, error_code=refusal.code)
    return state
