"""Process the records of topics with a function of yours, and lose none that it cannot handle.

    from penstock.consumer import Output, Processor

    def handle(record):
        order = json.loads(record.value)
        return Output("invoices", key=record.key, value=make_invoice(order))

    Processor("orders", group="billing", handler=handle, guarantee="exactly-once").run()

The one path: `processor.Processor` takes records from `membership` (the group, rebalances, staying alive while a handler
is slow), gives them to `handling` (attempts, back-off, dead letters) and settles what was handled with a writer of
`writing`: outputs, dead letters and offsets in the order, or in the transaction, that the guarantee asks for.
`dead_letters` knows the headers of a dead letter; `penstock dlq` reads them.

Promised: a record is only passed over once it was handled or its dead letter is written; whatever cannot be written
stops the processor with an error that says so; a rebalance or a stop settles what is done; memory is bounded by one
batch and its outputs. It works with any Kafka cluster and imports nothing of the broker.
Not promised: that a handler's own effects (a database, a mail) happen once, whatever the guarantee: only what it
returns is in the transaction. A record that is retried holds up the other partitions of the same processor.
"""

from penstock.consumer.backoff import Backoff
from penstock.consumer.counters import Counters
from penstock.consumer.failures import (
    DeadLetterNotWritten,
    Fenced,
    HandlerFailed,
    OutputNotWritten,
    Poison,
    Stopped,
)
from penstock.consumer.processor import Processor
from penstock.consumer.record import Output, Record

__all__ = [
    "Processor", "Record", "Output", "Backoff", "Counters",
    "Poison", "Stopped", "HandlerFailed", "DeadLetterNotWritten", "OutputNotWritten", "Fenced",
]  # fmt: skip
