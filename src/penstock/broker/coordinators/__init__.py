"""The hosts of the coordinators for groups and transactions. What those decide is in `penstock.groups` and
`penstock.transactions`.

`host` is the form that both share: it loads a shard from its partition of the internal topic, runs requests on it, appends
the records (`shard_log`), parks answers until they are committed (`uncommitted`), knows who waits for one (`tickets`), and
keeps its alarms (`shard_alarms`). `coordinator_topic` says which broker coordinates what. `groups` and `transactions` are the
two. `admission` asks the coordinator whether a transaction may begin in a partition, for the `first_batches` of a request;
`markers` writes the end of transactions into their partitions, here and on other brokers (`peer_batches`).
"""
