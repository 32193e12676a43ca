"""Process the records of topics with a function of yours. Records that it cannot handle go to a dead letter topic.

    from penstock.consumer import Output, Processor

    def handle(record):
        order = json.loads(record.value)
        return Output("invoices", key=record.key, value=make_invoice(order))

    Processor("orders", group="billing", handler=handle, guarantee="exactly-once").run()

How it works: `processor.Processor` gets records from `membership` (the group, rebalances, heartbeats while a handler is slow)
and gives them to `handling` (attempts, backoff, dead letters). A writer of `writing` then writes outputs, dead letters and
offsets, in the order or in the transaction that the guarantee needs. `dead_letters` knows the headers of a dead letter;
`penstock dlq` reads them.

Promised: a record is skipped only when it was handled or when its dead letter is written. What cannot be written stops the
processor with an error that says so. Before a rebalance or a stop, finished work is written and committed. Memory is limited to
one batch and its outputs. It works with any Kafka cluster and imports nothing of the broker. Not promised: that other effects
of a handler (a row in a database, a mail) happen once. Only what the handler returns is in the transaction. While a record is
retried, the other partitions of the same processor wait.
"""

from penstock.client.patience import Backoff
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
