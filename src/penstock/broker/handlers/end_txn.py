"""API 26 EndTxn, versions 0–5: Commit or abort a transaction. Answered when the decision is in the log; the markers are written
after that.

From version 5 on (transaction version 2) each transaction has an epoch of its own, and the answer brings the next.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.coordination.form import Outcome, Ticket
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithProducerIds, WithTransactions
    from penstock.transactions.shard import TransactionShard

    class Needs(WithProducerIds, WithTransactions, Protocol): ...


REQUEST = EndTxnRequest
RESPONSE = EndTxnResponse


class _EpochsUsedUp(Exception):
    """The producer needs a new id, which only the metadata store can give."""


async def handle(node: "Needs", call: Call, request: EndTxnRequest) -> EndTxnResponse:
    try:
        return await _end(node, call, request, None)
    except _EpochsUsedUp:
        return await _end(node, call, request, await node.producer_ids.next())


async def _end(
    node: "Needs", call: Call, request: EndTxnRequest, spare_producer_id: int | None
) -> EndTxnResponse:
    context = context_of(call)

    def decide(shard: "TransactionShard", ticket: Ticket, now_ms: int) -> Outcome:
        outcome = shard.end_transaction(request, context, ticket, now_ms, spare_producer_id=spare_producer_id)
        if outcome is None:
            raise _EpochsUsedUp
        return outcome

    answer: Any = await node.transactions.answer(request.transactional_id, decide)
    assert isinstance(answer, EndTxnResponse)
    return answer
