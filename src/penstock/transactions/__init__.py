"""The transaction coordinator: which producer may write under a transactional id, and how its transaction ends. Pure.

The one path through it: `shard.TransactionShard.<api>(request, context, ticket, now_ms)` looks up the id, a decision
(`init_producer.py`, `partitions.py`, `end.py`, `timeouts.py`) gives its next `state.TransactionMetadata` or refuses, and
the shard records that in Kafka's own `__transaction_state` format. The end of a transaction takes two records:

    EndTxn → record PrepareCommit → reply, and the errand MarkersToWrite → the host writes a marker to each partition
           → markers_written(errand) → record CompleteCommit

With the first record the end is decided: whoever loads the log later sends the same errand again.

Promises: Kafka's rules and error codes up to transaction version 2; a refused request changes nothing; the epochs of a
producer id only grow, and a client never holds the highest one, so that it can always be fenced.
Non-promises: it does not know which topics and partitions exist (the handler asks that first), and a prepared transaction
cannot be kept over InitProducerId (nor in Kafka 4.3). The epoch before the current one, by which a repeated InitProducerId
is known, is not in the records (nor in Kafka's): after a restart such a retry is told that it is fenced.
"""
