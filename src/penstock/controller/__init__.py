"""What the controller decides about topics, partitions, leaders, configs and producer ids. Pure.

The path through it: a handler calls one decision (`topics.create_topics`, `delete_topics`,
`partitions.create_partitions`, `elections.elect_leaders`, `configs.incremental_alter_configs` …) with the
cluster image and the request, and gets a `Decision`: the results to answer with, the ops to write to the
metadata tree in one `multi`, and the changes to apply to the image once that `multi` succeeded.

Promised: a decision changes nothing by itself, looks at nothing but its arguments, and gives Kafka 4.3's
error codes and texts; its ops and its changes say the same (an image read again from the tree equals the
image kept). What needs chance or time is passed in. Not promised: that the caller may do this (authorization
is the handler's), nor that it is still the controller; put a `Check` of `/controller_epoch` before the ops
where another broker could be.
"""
