"""API 66 ListTransactions, versions 0–2: The transactions that this broker coordinates, filtered by state, producer id and
duration.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithTransactions

REQUEST = ListTransactionsRequest
RESPONSE = ListTransactionsResponse


async def handle(
    node: "WithTransactions", call: Call, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    answers: list[ListTransactionsResponse] = await node.transactions.answer_of_all(
        lambda shard, ticket, now_ms: shard.list(request, ticket, now_ms)
    )
    refused = next((answer for answer in answers if answer.error_code), None)
    if refused is not None:
        return refused
    unknown = {name: None for answer in answers for name in answer.unknown_state_filters}
    return ListTransactionsResponse(
        unknown_state_filters=list(unknown),
        transaction_states=[state for answer in answers for state in answer.transaction_states],
    )
