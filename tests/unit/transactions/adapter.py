"""How the transcripts of transactions call a TransactionShard and read its records.

Partitions are written short: `partitions=[orders-0 orders-1]`, and the reply to AddPartitionsToTxn has a field for each:
`orders-0=NONE`. Spare producer ids are 1000, 1001, … in the order in which they are given out: one for each
InitProducerId, and one for an EndTxn that asks for it. What can happen beside requests:

    markers-written tx 1               the markers of the first errand (without a number: the last one) are written
    recorded tx state=Empty …          a record of an earlier time, with defaults for what is not written
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.transactions import records
from penstock.transactions.options import TransactionOptions
from penstock.transactions.shard import MarkersToWrite, TransactionShard
from penstock.transactions.state import NAMES, TransactionMetadata, TransactionState
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.list_transactions import ListTransactionsRequest
from simulation.transcript_text import build, plain
from simulation.transcripts import Adapter

STATES = {name: state for state, name in NAMES.items()}
FIRST_PRODUCER_ID = 1_000
OFFSETS_PARTITION = 7
"""Of `__consumer_offsets`, for all groups."""


class TransactionAdapter(Adapter):
    apis = {  # noqa: RUF012
        "InitProducerId": (InitProducerIdRequest, "init_producer_id"),
        "AddPartitionsToTxn": (AddPartitionsToTxnTransaction, "add_partitions"),
        "AddOffsetsToTxn": (AddOffsetsToTxnRequest, "add_offsets"),
        "EndTxn": (EndTxnRequest, "end_transaction"),
        "DescribeTransactions": (DescribeTransactionsRequest, "describe"),
        "ListTransactions": (ListTransactionsRequest, "list"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._producer_ids = count(FIRST_PRODUCER_ID)
        self._errands: dict[str, list[MarkersToWrite]] = {}

    def new_shard(self, options: Mapping[str, str]) -> TransactionShard:
        values: dict[str, Any] = {
            name: value == "true" if name == "two_phase_commit" else int(value)
            for name, value in options.items()
        }
        return TransactionShard(options=TransactionOptions(**values), partition_index=0)

    def request(self, api: str, fields: dict[str, Any], version: int) -> object:
        if api == "AddPartitionsToTxn":
            topics: dict[str, list[str]] = {}
            for place in fields.pop("partitions", ()):
                name, _, index = place.rpartition("-")
                topics.setdefault(name, []).append(index)
            named = [{"name": name, "partitions": found} for name, found in topics.items()]
            fields = {**fields, "topics": named}
        return build(self.apis[api][0], fields)

    def call(
        self, shard: Any, api: str, request: Any, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        asked = (request, context, ticket, now_ms)
        match api:
            case "InitProducerId":
                outcome = shard.init_producer_id(*asked, spare_producer_id=next(self._producer_ids))
            case "AddOffsetsToTxn":
                outcome = shard.add_offsets(*asked, offsets_partition=OFFSETS_PARTITION)
            case "EndTxn":
                outcome = shard.end_transaction(*asked, spare_producer_id=None)
                if outcome is None:
                    outcome = shard.end_transaction(*asked, spare_producer_id=next(self._producer_ids))
            case "DescribeTransactions":
                outcome = shard.describe(request.transactional_ids, ticket, now_ms)
            case "ListTransactions":
                outcome = shard.list(request, ticket, now_ms)
            case _:
                outcome = shard.add_partitions(*asked)
        assert isinstance(outcome, Outcome)
        return outcome

    def event(self, shard: Any, words: Sequence[str], now_ms: int) -> Outcome:
        match words:
            case ["markers-written", name, *which]:
                errand = self._errands[name][int(which[0]) - 1 if which else -1]
                outcome: Outcome = shard.markers_written(errand, now_ms)
            case ["recorded", name, *fields]:
                outcome = Outcome()
                metadata = _metadata(dict(field.split("=") for field in fields), now_ms)
                outcome.record(records.write_key(name), records.write_value(metadata, version=1))
            case _:
                return super().event(shard, words, now_ms)
        return outcome

    def view(self, api: str, response: Any, *, sparse: bool) -> Any:
        if api == "DescribeTransactions":
            return {"transactions": plain(response, sparse=sparse)}
        if api == "AddPartitionsToTxn":
            return {
                f"{topic.name}-{result.partition_index}": ErrorCode(result.partition_error_code).name
                for topic in response.topic_results
                for result in topic.results_by_partition
            }
        return plain(response, sparse=sparse)

    def describe_record(self, key: bytes, value: bytes | None) -> tuple[str, Mapping[str, object]]:
        name = records.read_key(key)
        if value is None:
            return "Transaction", {"id": name, "deleted": True}
        metadata = records.read_value(value)
        fields = metadata._asdict() | {
            "state": NAMES[metadata.state],
            "partitions": _short(metadata.partitions),
        }
        if metadata.previous_producer_id == metadata.producer_id:
            del fields["previous_producer_id"]  # as always, but where the id changes
        defaults = TransactionMetadata._field_defaults
        shown = {name: field for name, field in fields.items() if field not in ([], defaults.get(name))}
        return "Transaction", {"id": name, "version": value[1], **shown}

    def describe_errand(self, errand: object) -> tuple[str, Mapping[str, object]]:
        assert isinstance(errand, MarkersToWrite)
        self._errands.setdefault(errand.transactional_id, []).append(errand)
        return "MarkersToWrite", {**errand._asdict(), "partitions": _short(errand.partitions)}


def _short(places: Any) -> list[str]:
    return [str(place) for place in sorted(places)]


def _metadata(fields: dict[str, str], now_ms: int) -> TransactionMetadata:
    places = fields.pop("partitions", "")
    state = STATES[fields.pop("state", "Empty")]
    start_ms = -1 if state is TransactionState.EMPTY else now_ms
    known = TransactionMetadata(1, 0, 60_000, state, _places(places), now_ms, start_ms)
    numbers: dict[str, Any] = {name: int(value) for name, value in fields.items()}
    return known._replace(**numbers)


def _places(text: str) -> frozenset[TopicPartition]:
    split = (place.rpartition("-") for place in text.split(",") if place)
    return frozenset(TopicPartition(topic, int(index)) for topic, _, index in split)
